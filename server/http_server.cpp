#include "server/http_server.hpp"
