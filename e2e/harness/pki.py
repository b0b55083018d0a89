"""A certificate authority in a folder, made with the openssl program."""

import pathlib
import subprocess


def _openssl(*args, stdin: str | None = None) -> None:
    done = subprocess.run(["openssl", *map(str, args)], input=stdin, text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {args[0]}: {done.stderr.strip()}")


class Authority:
    def __init__(self, directory: pathlib.Path):
        self.directory = directory
        self.certificate = directory / "ca.crt"
        self._key = directory / "ca.key"
        directory.mkdir(parents=True, exist_ok=True)
        if not self.certificate.exists():
            _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-keyout", self._key, "-out", self.certificate, "-days", "30",
                     "-subj", "/CN=e2e-authority")

    def issue(self, name: str, common_name: str, groups: tuple = (), hosts: tuple = ()) -> tuple:
        """(certificate, key) files. With hosts it is a server certificate, else a client's, whose
        common name is the user and whose organisations are the groups."""
        key, request, certificate = (self.directory / f"{name}.{e}" for e in ("key", "csr", "crt"))
        if certificate.exists():
            return certificate, key
        subject = "".join(f"/O={g}" for g in groups) + f"/CN={common_name}"
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", key, "-out", request, "-subj", subject)
        extensions = "extendedKeyUsage=" + ("serverAuth" if hosts else "clientAuth") + "\n"
        if hosts:
            extensions += "subjectAltName=" + ",".join(hosts) + "\n"
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key,
                 "-CAcreateserial", "-out", certificate, "-days", "30", "-extfile", "/dev/stdin",
                 stdin=extensions)
        request.unlink()
        return certificate, key

    def service_account_key(self) -> tuple:
        """(private, public) files for signing service account tokens."""
        private, public = self.directory / "sa.key", self.directory / "sa.pub"
        if not private.exists():
            _openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", private)
            _openssl("ec", "-in", private, "-pubout", "-out", public)
        return private, public
