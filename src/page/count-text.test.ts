import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countText } from './count-text.ts'

const cases: [count: number, plural: string, text: string][] = [
  [0, 'tunnels', '0 tunnels'],
  [1, 'tunnels', '1 tunnel'],
  [1, 'IP policies', '1 IP policy'],
  [1, 'reserved addresses', '1 reserved address'],
  [1, 'HTTP response backends', '1 HTTP response backend'],
  [12_345, 'API keys', '12,345 API keys'],
]
for (const [count, plural, text] of cases) test(text, () => assert.equal(countText(count, plural), text))
