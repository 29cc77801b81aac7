import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Evaluator } from './evaluator.ts'
import { Moment } from './moment.ts'
import { parseHere, prepareExpression, readPrepared } from './parsed.ts'
import { ownLists, type Site } from './policy-phases.ts'

const site: Site = { place: 'tcp', phase: 'connect', lists: ownLists }
const peer = { ip: '192.0.2.1', port: 1, serverIp: '192.0.2.2', serverPort: 443, startedAt: 0 }

/** Expressions that are true, one for each kind of constant and of part. */
const texts = [
  '9223372036854775807 == 9223372036854775806 + 1 && -9223372036854775807 < 0',
  '18446744073709551615u > 1u',
  '1.5e300 * 1.5e300 > 1.0 && 1.0 / -0.0 < 0.0 && 0.1 + 0.2 != 0.3',
  "b'\\000\\377' == bytes(b'\\000\\377') && size(b'abc') == 3",
  "'é😀\\n' != r'\\n' && null == null && !false",
  "{'a': [1, 2u, 3.0], 5: {true: null}}['a'][1] == 2u",
  "conn.client_ip.matches('^192[.]0') && !conn.client_ip.matches('^10')",
  '[1, 2, 3].filter(x, x > 1).map(x, x * 2).exists_one(x, x == 4) && has(conn.client_ip)',
  "inCidrRange(conn.client_ip, '192.0.2.0/24') ? conn.client_port == 1 : false",
]

for (const text of texts) {
  test(`has the same value after being sent between threads: ${text}`, () => {
    const evaluator = new Evaluator()
    const crossed = readPrepared(structuredClone(prepareExpression(text)))
    for (const parsed of [parseHere(text), crossed]) {
      const moment = new Moment({
        connection: { peer, edgeId: 'e', serverName: undefined, tls: undefined },
        now: 0,
        region: '',
      })
      assert.equal(evaluator.compile(text, site, new Set(), { parsed })(moment), true)
    }
  })
}
