import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiPath } from './api-path.ts'

const cases: [uri: string, base: string, path: string | undefined][] = [
  ['http://localhost:7400/tunnels/tn_1', 'http://localhost:7400/', '/tunnels/tn_1'],
  ['https://api.example.com/base/edges/https/e', 'https://api.example.com/base/', '/edges/https/e'],
  ['https://api.example.com/edges/https/e', 'https://api.example.com/base/', undefined],
  ['not an address', 'http://localhost:7400/', undefined],
  ['', 'http://localhost:7400/', undefined],
]
for (const [uri, base, path] of cases) test(`${uri} at ${base}`, () => assert.equal(apiPath(uri, base), path))
