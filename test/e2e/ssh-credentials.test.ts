/** SSH clients whose credential changes: while they are online, or between offering a key and proving it. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { assertPrinted, clientKey, TestClient } from '../../src/data-plane/ssh/testing/test-gateway.ts'
import { keyLogin, makeKey, messages, RawClient, type SigningKey } from '../../src/data-plane/ssh/testing/test-raw.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

const ED25519 = 'ssh-ed25519'

/** The limit of D25, and as much again for a busy machine. */
const ENDED_MS = 10_000

interface Holder {
  readonly platform: Platform
  readonly key: SigningKey
  readonly credentialId: string
  readonly ownerId: string
}

async function holder(t: TestContext, owners = '/bot_users'): Promise<Holder> {
  const platform = await startPlatform()
  t.after(() => platform.stop())
  const key = makeKey()
  const { id: ownerId } = await platform.admin.create(owners, { name: 'the holder' })
  const body = { public_key: `${ED25519} ${key.blob.toString('base64')}`, owner_id: ownerId }
  const { id: credentialId } = await platform.admin.create('/ssh_credentials', body)
  return { platform, key, credentialId, ownerId }
}

const proof = (raw: RawClient, { blob, sign }: SigningKey): Buffer =>
  keyLogin(raw, { blob, algorithm: ED25519, signer: (data) => sign(data) })

async function sessions({ platform }: Holder): Promise<number> {
  return (await platform.admin.get('/tunnel_sessions')).tunnel_sessions.length
}

/** Changes that revoke a credential, by owner. */
const changes: readonly [what: string, owners: string, change: (holder: Holder) => Promise<unknown>][] = [
  [
    'it is deleted',
    '/bot_users',
    ({ platform, credentialId }) => platform.admin.delete(`/ssh_credentials/${credentialId}`),
  ],
  [
    'its bot is set inactive',
    '/bot_users',
    ({ platform, ownerId }) => platform.admin.update(`/bot_users/${ownerId}`, { active: false }),
  ],
  ['its bot is deleted', '/bot_users', ({ platform, ownerId }) => platform.admin.delete(`/bot_users/${ownerId}`)],
  [
    'its user is set inactive',
    '/users',
    ({ platform, ownerId }) => platform.admin.update(`/users/${ownerId}`, { active: false }),
  ],
  ['an IP restriction excludes its address', '/bot_users', restrict],
]

/** Admits only an address that no test uses. */
async function restrict({ platform: { admin } }: Holder): Promise<void> {
  const { id } = await admin.create('/ip_policies')
  await admin.create('/ip_policy_rules', { ip_policy_id: id, action: 'allow', cidr: '127.0.0.9/32' })
  await admin.create('/ip_restrictions', { type: 'agent', enforced: true, ip_policy_ids: [id] })
}

describe('a credential is revoked:', () => {
  for (const [what, owners, change] of changes) {
    test(`${what} during a session: the session ends, and no other begins`, async (t) => {
      const held = await holder(t, owners)
      const raw = await RawClient.atLogin(held.platform.sshPort)
      assert.equal(await raw.login(proof(raw, held.key)), messages.authSuccess)
      await until('it is online', async () => (await sessions(held)) === 1)
      await change(held)
      await until('its session has ended', async () => (await sessions(held)) === 0, { limitMs: ENDED_MS })
      await raw.closed
      const again = RawClient.atLogin(held.platform.sshPort)
      const answer = await again.then(
        (client) => client.login(proof(client, held.key)),
        () => 0,
      )
      assert.notEqual(answer, messages.authSuccess)
      assert.equal(await sessions(held), 0)
    })

    test(`${what} between offer and proof of the key: it is not let in`, async (t) => {
      const held = await holder(t, owners)
      const raw = await RawClient.atLogin(held.platform.sshPort)
      t.after(() => raw.leave())
      const { blob } = held.key
      assert.equal(await raw.login(keyLogin(raw, { blob, algorithm: ED25519 })), messages.keyOk)
      await change(held)
      // The gateway learns of restrictions a little later than the caller who made them.
      if (change === restrict) await shutOut(held)
      assert.notEqual(await raw.login(proof(raw, held.key)), messages.authSuccess)
      assert.equal(await sessions(held), 0)
    })
  }
})

/** Resolves once the gateway refuses new connections. */
async function shutOut({ platform }: Holder): Promise<void> {
  await until('the restriction holds', async () => {
    const raw = await RawClient.atLogin(platform.sshPort).catch(() => undefined)
    raw?.leave()
    return raw === undefined
  })
}

test('ACL rules that change during a session apply to its next forward, and existing ones stay (R-5.1)', async (t) => {
  const { platform } = await holder(t)
  const { id } = await platform.admin.create('/ssh_credentials', { public_key: clientKey.publicLine })
  const client = await new TestClient(platform.sshPort).login()
  const run = await client.exec('http')
  await client.forward('first.localhost', 80)
  await platform.admin.update(`/ssh_credentials/${id}`, { acl: ['bind:second.localhost'] })
  await client.forward('second.localhost', 80)
  const { endpoints } = (await platform.admin.get('/endpoints')) as { endpoints: { public_url: string }[] }
  assert.equal(endpoints.filter(({ public_url: url }) => /(first|second)\.localhost/.test(url)).length, 2)
  await assert.rejects(client.forward('third.localhost', 80))
  assertPrinted(await run.printed, 316)
})
