import assert from 'node:assert/strict'
import { createCipheriv, randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { isFirstForm, Sealer } from '../../lib/secrets/seal.ts'
import { openBindToken, sealBindToken } from './bind-tunnel.ts'
import { findReturn, sealCookie } from './resume.ts'
import { type Seal, sealFacts } from './sealed.ts'

const seal = new Sealer(randomBytes(32))
/** The control plane opens what earlier versions sealed with the key of the database. */
function withFormer(former: Sealer): Seal {
  const own = new Sealer(Buffer.from(former.keyFor('tests')))
  return {
    seal: (text, context) => own.seal(text, context),
    open: (text, context) => own.open(text, context),
    openFormer: async (text, context) => (isFirstForm(text) ? former.openFirstForm(text) : former.open(text, context)),
  }
}

const sessionId = `ts_${'1'.repeat(27)}`
const cookie = sealCookie(seal, { sessionId, credentialId: 'cr_1', startedAt: 5 })

describe('a session is returned to', () => {
  const good = { clientId: sessionId, cookie, leg: 0, credentialId: 'cr_1' }

  test('with its id, its cookie and the same credential', async () => {
    assert.deepEqual(await findReturn(seal, good), { sessionId, credentialId: 'cr_1', startedAt: 5 })
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
    test(`not by ${name}`, async () => assert.equal(await findReturn(seal, { ...good, ...change }), undefined))
  }
})

describe('facts that an earlier version sealed', () => {
  const key = Buffer.alloc(32, 3)
  const old = (facts: object): string => {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    const text = cipher.update(JSON.stringify(facts), 'utf8')
    return `sealed:1:${Buffer.concat([nonce, text, cipher.final(), cipher.getAuthTag()]).toString('base64')}`
  }
  const facts = { sessionId, credentialId: 'cr_1', startedAt: 5 }
  const returning = { clientId: sessionId, leg: 0, credentialId: 'cr_1' }

  test('are still valid, as their own kind', async () => {
    const seal = withFormer(new Sealer(key))
    assert.deepEqual(await findReturn(seal, { ...returning, cookie: old({ kind: 'session', ...facts }) }), facts)
    assert.equal(await findReturn(seal, { ...returning, cookie: old({ kind: 'bind', ...facts }) }), undefined)
    assert.equal(await findReturn(seal, { ...returning, cookie: old(facts) }), undefined)
  })

  test('are not accepted as a secret of the database, nor is such a secret accepted as a fact', async () => {
    const former = new Sealer(key)
    const seal = withFormer(former)
    const text = JSON.stringify({ kind: 'session', ...facts })
    const secret = former.seal(text, 'modules/edghtsrt_1/oidc/client_secret')
    assert.equal(await findReturn(seal, { ...returning, cookie: secret }), undefined)
    assert.throws(() => seal.open(cookie, 'modules/edghtsrt_1/oidc/client_secret'))
  })
})

describe('a token of a bind', () => {
  const tunnelId = `tn_${'1'.repeat(27)}`
  const tcp = { credentialId: 'cr_1', tunnelId, startedAt: 5, proto: 'tcp', host: 'example.test', port: 20_001 }
  const https = { ...tcp, proto: 'https', host: 'a.example.test', port: undefined }

  test('gives back its fields', async () => {
    for (const facts of [tcp, https]) {
      assert.deepEqual(await openBindToken(seal, sealBindToken(seal, facts), facts), facts)
    }
  })

  test('is invalid for another credential or protocol, and when malformed', async () => {
    const text = sealBindToken(seal, tcp)
    assert.equal(await openBindToken(seal, text, { credentialId: 'cr_2', proto: 'tcp' }), undefined)
    assert.equal(await openBindToken(seal, text, { credentialId: 'cr_1', proto: 'tls' }), undefined)
    for (const bad of ['', 'x', cookie]) assert.equal(await openBindToken(seal, bad, tcp), undefined)
  })
})
