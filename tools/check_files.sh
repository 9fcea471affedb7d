#!/usr/bin/env bash
# Checks every file of $FILES; the worst exit code counts. Used by action.yml, and by hand in the same way:
#   FILES="jobs/*.sql" POLICY=iceberg-spark bash tools/check_files.sh
set -u
worst=0
shopt -s nullglob globstar
# shellcheck disable=SC2206  # FILES is a list of globs
files=($FILES)
if [ ${#files[@]} -eq 0 ]; then
  echo "no file matches $FILES" >&2
  exit 2
fi
for file in "${files[@]}"; do
  options=(--max-seconds "${MAX_SECONDS:-60}")
  [ -n "${POLICY:-}" ] && options+=(--policy "$POLICY")
  if [ -n "${SARIF:-}" ]; then
    mkdir -p "$SARIF"
    options+=(--sarif "$SARIF/$(basename "$file").sarif")
  fi
  echo "== $file"
  ${LAKEPROOF:-lakeproof} check "$file" "${options[@]}"
  code=$?
  [ $code -gt $worst ] && worst=$code
done
exit $worst
