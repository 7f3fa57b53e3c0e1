#!/usr/bin/env bash
# Holds deploy/grafana/*.json against the types of @grafana/schema: wrong enums and wrong types, which no round trip sees.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
command -v npm >/dev/null || { echo "npm is missing: install Node.js 20 or newer" >&2; exit 1; }
[ -d node_modules ] || npm install --ignore-scripts --no-package-lock --no-audit --no-fund
for name in node fleet; do
    # The types name enums, and JSON has their words.
    cat >"$name.ts" <<TS
import type {Dashboard} from '@grafana/schema';
type Plain<T> = T extends string ? \`\${T}\`
    : T extends (infer U)[] ? Plain<U>[]
    : T extends object ? {[K in keyof T]: Plain<T[K]>}
    : T;
export const dashboard: Plain<Partial<Dashboard>> = $(cat "../../deploy/grafana/$name.json");
TS
done
trap 'rm -f node.ts fleet.ts' EXIT
npx --no-install tsc --noEmit --strict --skipLibCheck --moduleResolution bundler --module esnext --target es2022 node.ts fleet.ts
echo "node.json and fleet.json are what Grafana's types say"
