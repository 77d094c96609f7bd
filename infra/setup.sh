#!/usr/bin/env bash
# Installs what this checkout needs to run and test stream-bench: Java (with apt, if possible), Chromium for tests,
# and the virtual environment .venv with the packages of requirements.lock, whose hashes are checked. If everything is
# installed, it changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

log() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 3; }

java_major() {
  local output
  output=$("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1) || { echo 0; return; }
  sed -nE 's/.*version "([0-9]+).*/\1/p' <<<"$output" | head -n 1
}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  fail "Python 3.11 or later is needed; run: make setup PYTHON=python3.11"
"$python" -c 'import ensurepip, venv' 2>/dev/null || fail "the venv module is missing; run: apt-get install python3-venv"

if [ "$(java_major)" -lt 17 ] 2>/dev/null || [ -z "$(java_major)" ]; then
  command="apt-get install -y openjdk-17-jre-headless"
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "Java 17 or later is missing; run: sudo $command"
  log "Java 17 or later is missing: installing openjdk-17-jre-headless"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive $command -qq >/dev/null || fail "Java could not be installed; run: $command"
fi

if ! command -v chromium >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  log "Chromium is missing: installing it for the tests of the HTML report"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -qq chromium >/dev/null ||
    log "Chromium could not be installed; the tests of the HTML report will be skipped"
fi

if ! command -v redis-server >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  log "Redis is missing: installing redis-server, for the test of the example plugin"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -qq redis-server >/dev/null ||
    log "redis-server could not be installed; the test of the example plugin will be skipped"
  [ ! -d /run/systemd/system ] || systemctl disable --quiet --now redis-server || true  # the test starts its own
fi

marker=.venv/set-up-$(cat pyproject.toml requirements.lock | sha256sum | cut -c1-16)
if [ ! -e "$marker" ]; then
  log "installing into .venv (about two minutes the first time)"
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  pip=(.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps)
  "${pip[@]}" --require-hashes -r requirements.lock
  "${pip[@]}" -e .
  rm -f .venv/set-up-*
  touch "$marker"
fi
log "ready: $(.venv/bin/python --version), $("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | head -n 1)"
