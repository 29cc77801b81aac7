/** A script that writes and visits at once meets what it wrote, at every worker (D100). */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Answer, Sending } from '../support/api-client.ts'
import { eachStore } from '../support/databases.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { visitsOfAll } from '../support/test-workers.ts'
import { tlsIdentity } from '../support/tls-identity.ts'
import { visit } from '../support/visitor.ts'

const PLANES = 2

/** Rounds of writes and visits; a longer run sets another number. */
const ROUNDS = Number(process.env.POSTERN_IN_FORCE_ROUNDS ?? 12)

eachStore((store) => {
  describe('a script that visits what it has just written', () => {
    let platform: Platform
    let pending = 0
    before(async () => {
      platform = await startPlatform({ databaseUrl: await store.url(), planeCount: PLANES })
    })
    after(() => platform.stop())

    /** Sends a write; one that is pending counts, and is then waited for by the next that is not. */
    const write = async (method: string, path: string, sending?: Sending): Promise<Answer> => {
      const answer = await platform.admin.send(method, path, sending)
      assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`)
      if (answer.headers.get('service-in-force') !== 'yes') pending++
      return answer
    }
    /** What new visitors see, as many as reach every worker. */
    const seen = async (name: string): Promise<string> => {
      const visits = Array.from({ length: visitsOfAll(PLANES) }, async () => {
        try {
          const { status, text } = await visit(`https://${name}:${platform.httpsPort}/`, platform)
          return status === 200 ? text : String(status)
        } catch {
          // A name that nothing serves has no certificate.
          return 'nothing'
        }
      })
      return [...new Set(await Promise.all(visits))].join()
    }

    test(`meets it in ${ROUNDS} rounds at every worker`, async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const name = `round-${round}.in-force.test`
        const before = pending
        const say = async (body: string) => (await write('POST', '/backends/http_response', { body: { body } })).body.id
        const [one, two] = [await say('one'), await say('two')]
        const edge = (await write('POST', '/edges/https', { body: { hostports: [`${name}:443`] } })).body
        const path = `/edges/https/${edge.id}`
        const route = (
          await write('POST', `${path}/routes`, {
            body: { match_type: 'path_prefix', match: '/', backend: { backend_id: one } },
          })
        ).body
        const looks: [what: string, now: string, wanted: string][] = []
        const look = async (what: string, wanted: string): Promise<void> => {
          if (pending === before) looks.push([what, await seen(name), wanted])
        }
        await look('a new edge', 'one')
        await write('PUT', `${path}/routes/${route.id}/backend`, { body: { backend_id: two } })
        await look('another backend', 'two')
        const policy = { inbound: [{ expressions: ["req.url.path == '/'"], actions: [{ type: 'deny' }] }] }
        await write('PUT', `${path}/routes/${route.id}/policy`, { body: policy })
        await look('a policy', '403')
        await write('DELETE', `${path}/routes/${route.id}/policy`)
        await look('no policy', 'two')
        await write('DELETE', `${path}/routes/${route.id}`)
        await write('DELETE', path)
        await look('no edge', 'nothing')
        for (const [what, now, wanted] of looks) assert.equal(now, wanted, `${what} in round ${round}`)
      }
      t.diagnostic(`pending: ${pending} writes of ${ROUNDS * 8}`)
    })

    test('meets an uploaded certificate in its first handshake, and the former again without it', async () => {
      const name = 'certified.in-force.test'
      const backend = (await write('POST', '/backends/http_response', { body: { body: 'hello' } })).body
      const edge = (await write('POST', '/edges/https', { body: { hostports: [`${name}:443`] } })).body
      await write('POST', `/edges/https/${edge.id}/routes`, {
        body: { match_type: 'path_prefix', match: '/', backend: { backend_id: backend.id } },
      })
      const { ca, cert, key } = await tlsIdentity([name])
      const isTrusted = () =>
        visit(`https://${name}:${platform.httpsPort}/`, { ca }).then(
          ({ text }) => text === 'hello',
          () => false,
        )
      const before = pending
      assert.equal(await isTrusted(), false)
      const body = { certificate_pem: cert, private_key_pem: key }
      const { id } = (await write('POST', '/tls_certificates', { body })).body
      if (pending === before) assert.equal(await isTrusted(), true)
      await write('DELETE', `/tls_certificates/${id}`)
      if (pending === before) assert.equal(await isTrusted(), false)
    })
  })

  describe('the header of a write', () => {
    let platform: Platform
    before(async () => {
      platform = await startPlatform({ databaseUrl: await store.url() })
    })
    after(() => platform.stop())

    test('comes with writes alone, and pages of other origins may read it', async () => {
      const { admin } = platform
      const headers = { origin: 'https://other.example' }
      const made = await admin.send('POST', '/backends/http_response', { body: { body: 'x' }, headers })
      assert.match(made.headers.get('service-in-force') ?? '', /^(yes|pending)$/)
      assert.match(made.headers.get('access-control-expose-headers') ?? '', /service-in-force/)
      const read = await admin.send('GET', `/backends/http_response/${made.body.id}`)
      assert.equal(read.headers.get('service-in-force'), null)
      const refused = await admin.send('POST', '/backends/http_response', { body: { nonsense: 1 } })
      assert.equal(refused.headers.get('service-in-force'), null)
      const ngrok = await admin.send('DELETE', `/backends/http_response/${made.body.id}`, {
        headers: { 'ngrok-version': '2', 'service-version': '' },
      })
      assert.equal(ngrok.status, 204)
      assert.match(ngrok.headers.get('service-in-force') ?? '', /^(yes|pending)$/)
    })

    for (const [prefer, isAsync] of [
      ['respond-async', true],
      ['return=minimal, Respond-Async; wait=10', true],
      ['respond-asynchronously', false],
      ['return=representation', false],
    ] as const) {
      test(`with \`Prefer: ${prefer}\` ${isAsync ? 'says that it did not wait' : 'is as without'}`, async () => {
        const { headers } = await platform.admin.send('POST', '/ip_policies', { headers: { prefer } })
        assert.equal(headers.get('preference-applied'), isAsync ? 'respond-async' : null)
        if (isAsync) assert.equal(headers.get('service-in-force'), 'pending')
      })
    }
  })
})
