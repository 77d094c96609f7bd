#!/usr/bin/env bash
# Sets up what is missing to run and test stream-bench in this checkout: Java (by apt, where that is possible) and .venv with
# everything in it, at the versions of constraints.txt. Changes nothing when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

say() { printf 'setup: %s\n' "$*"; }
stop() { printf 'setup: %s\n' "$*" >&2; exit 3; }

java_major() {
  local said
  said=$("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1) || { echo 0; return; }
  sed -nE 's/.*version "([0-9]+).*/\1/p' <<<"$said" | head -n 1
}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  stop "Python 3.11 or later is needed; run: make setup PYTHON=python3.11"
"$python" -c 'import ensurepip, venv' 2>/dev/null || stop "the venv module is missing; run: apt-get install python3-venv"

if [ "$(java_major)" -lt 17 ] 2>/dev/null || [ -z "$(java_major)" ]; then
  wanted="apt-get install -y openjdk-17-jre-headless"
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || stop "Java 17 or later is missing; run: sudo $wanted"
  say "Java 17 or later is missing: installing openjdk-17-jre-headless"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive $wanted -qq >/dev/null || stop "Java could not be installed; run: $wanted"
fi

if ! command -v chromium >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  say "Chromium is missing: installing it, for the tests of the report's page"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -qq chromium >/dev/null ||
    say "Chromium could not be installed; the tests of the page will be skipped"
fi

if ! command -v redis-server >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  say "Redis is missing: installing redis-server, for the test of the example plugin"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -qq redis-server >/dev/null ||
    say "redis-server could not be installed; the test of the example plugin will be skipped"
  [ ! -d /run/systemd/system ] || systemctl disable --quiet --now redis-server || true  # the test starts its own
fi

mark=.venv/set-up-$(cat pyproject.toml constraints.txt | sha256sum | cut -c1-16)
if [ ! -e "$mark" ]; then
  say "installing into .venv (about two minutes the first time)"
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,test,check]'
  rm -f .venv/set-up-*
  touch "$mark"
fi
say "ready: $(.venv/bin/python --version), $("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | head -n 1)"
