#!/bin/sh
# Makes configure and the Makefile.in from their sources, in a fresh clone.
set -e
cd "$(dirname "$0")"
./sources
autoreconf --install --force
