// The single translation unit that holds the non-template bodies of Boost.Asio and Boost.Beast.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
