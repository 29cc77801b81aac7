/** Commands to agents that are not online, and the bodies that commands accept (contract 4.3, D43). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Sending } from '../support/api-client.ts'
import { assertEnvelope, comparable } from './envelope.ts'
import { eachTarget } from './target.ts'

const COMMANDS = ['restart', 'stop', 'update']
const NOBODY = `ts_${'1'.repeat(27)}`

/** D43: a command accepts any body, or none, so none of these may cause a refusal. */
const bodies: readonly [what: string, sending: Sending][] = [
  ['no body', {}],
  ['a JSON type and no body', { headers: { 'content-type': 'application/json' } }],
  ['an empty object', { body: {} }],
  ['the id', { body: { id: NOBODY } }],
  ['another id', { body: { id: 'ts_other' } }],
  ['unknown fields', { body: { version: 'latest', force: true } }],
  ['an array', { body: [1, 2] }],
  ['null', { body: 'null' }],
  ['invalid JSON', { body: '{"a":' }],
  ['a duplicate key', { body: '{"a":1,"a":2}' }],
  ['a deep body', { body: `${'['.repeat(50)}${']'.repeat(50)}` }],
  ['text', { body: 'please', headers: { 'content-type': 'text/plain' } }],
  ['a form', { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
  ['invalid UTF-8', { body: new Uint8Array([0xff, 0xfe, 0x00]) }],
  ['an invalid content type', { body: 'x', headers: { 'content-type': 'nonsense' } }],
]

eachTarget((target) => {
  for (const command of COMMANDS) {
    for (const [what, sending] of bodies) {
      // No body is looked at, so one store is enough for all but the first.
      if (target.name === 'postgres' && what !== 'no body') continue
      test(`${command} with ${what} to an unknown session is 404`, async () => {
        const answer = await target.api.send('POST', `/tunnel_sessions/${NOBODY}/${command}`, sending)
        assertEnvelope(answer, 404, 'ERR_NOT_FOUND')
      })
    }

    test(`${command} to an id of the wrong form is 404 like any other`, async () => {
      const unknown = await target.api.send('POST', `/tunnel_sessions/${NOBODY}/${command}`)
      for (const id of ['x', 'ts_', `tn_${'1'.repeat(27)}`, `${NOBODY}1`, `ts_${'1'.repeat(26)}-`]) {
        const answer = await target.api.send('POST', `/tunnel_sessions/${id}/${command}`)
        assert.deepEqual(comparable(answer), comparable(unknown), id)
      }
    })

    // Refused before the store is used, so one store is enough.
    if (target.name === 'postgres') continue

    test(`${command} is a POST and nothing else`, async () => {
      for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
        const answer = await target.api.send(method, `/tunnel_sessions/${NOBODY}/${command}`)
        assertEnvelope(answer, 405, 'ERR_METHOD_NOT_ALLOWED')
        assert.equal(answer.headers.get('allow'), 'POST')
      }
    })

    test(`${command} takes no query`, async () => {
      const answer = await target.api.send('POST', `/tunnel_sessions/${NOBODY}/${command}?force=true`)
      assertEnvelope(answer, 400, 'ERR_UNKNOWN_QUERY')
    })
  }

  test('there are no other commands', async () => {
    for (const command of ['start', 'kill', 'upgrade', 'RESTART', 'stop/now']) {
      assertEnvelope(await target.api.send('POST', `/tunnel_sessions/${NOBODY}/${command}`), 404, 'ERR_ROUTE_NOT_FOUND')
    }
  })
})
