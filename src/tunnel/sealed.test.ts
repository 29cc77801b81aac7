import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { Sealer } from '../lib/seal.ts'
import { openBindToken, sealBindToken } from './bind-token.ts'
import { findReturn, sealCookie } from './resume.ts'
import { sealFacts } from './sealed.ts'

const seal = new Sealer(randomBytes(32))
const sessionId = `ts_${'1'.repeat(27)}`
const cookie = sealCookie(seal, { sessionId, credentialId: 'cr_1', startedAt: 5 })

describe('a session is returned to', () => {
  const good = { clientId: sessionId, cookie, leg: 0, credentialId: 'cr_1' }

  test('with its id, its cookie and the same credential', () => {
    assert.deepEqual(findReturn(seal, good), { sessionId, credentialId: 'cr_1', startedAt: 5 })
  })

  const token = sealFacts(seal, 'bind', { sessionId, credentialId: 'cr_1', startedAt: 5 })
  const cases: Record<string, Partial<typeof good>> = {
    'an agent that has just started': { clientId: '', cookie: '' },
    'an id without a cookie': { cookie: '' },
    'a cookie without an id': { clientId: '' },
    'a cookie of another session': { clientId: `ts_${'2'.repeat(27)}` },
    'another credential': { credentialId: 'cr_2' },
    'a further leg': { leg: 1 },
    'a cookie that was made up': { cookie: 'sealed:1:AAAA' },
    'a cookie that was changed': { cookie: `${cookie.slice(0, -8)}AAAAAAA=` },
    'a cookie of another key': {
      cookie: sealCookie(new Sealer(randomBytes(32)), { ...good, sessionId, startedAt: 5 }),
    },
    'a token of another kind': { cookie: token },
    'a cookie without end': { cookie: 'x'.repeat(60_000) },
  }
  for (const [name, change] of Object.entries(cases)) {
    test(`not by ${name}`, () => assert.equal(findReturn(seal, { ...good, ...change }), undefined))
  }
})

describe('a token of a bind', () => {
  const tunnelId = `tn_${'1'.repeat(27)}`
  const tcp = { credentialId: 'cr_1', tunnelId, startedAt: 5, proto: 'tcp', host: 'example.test', port: 20_001 }
  const https = { ...tcp, proto: 'https', host: 'a.example.test', port: undefined }

  test('gives back what it was made for', () => {
    for (const facts of [tcp, https]) {
      assert.deepEqual(openBindToken(seal, sealBindToken(seal, facts), facts), facts)
    }
  })

  test('is worth nothing to another credential, for another protocol, or when it is none', () => {
    const text = sealBindToken(seal, tcp)
    assert.equal(openBindToken(seal, text, { credentialId: 'cr_2', proto: 'tcp' }), undefined)
    assert.equal(openBindToken(seal, text, { credentialId: 'cr_1', proto: 'tls' }), undefined)
    for (const bad of ['', 'x', cookie]) assert.equal(openBindToken(seal, bad, tcp), undefined)
  })
})
