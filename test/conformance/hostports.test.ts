/** Hostports: how they are parsed and shown, and that each belongs to one edge only (D26). */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { eachTarget, unique, uniqueAddress, uniqueName } from './target.ts'
import { World } from './world.ts'

const named = ['tls_edge', 'https_edge'] as const
const PUBLIC_PORT = 8443

/** Spellings of one name, which the server treats as the same. */
const spellings = (): string[][] => {
  const name = unique('host')
  return [
    [`${name}.example.com:443`, `${name.toUpperCase()}.Example.COM:443`, `${name}.example.com.:443`],
    [`*.${name}.example.com:443`, `*.${name}.EXAMPLE.com:443`],
    [`bücher.${name}.example:443`, `BÜCHER.${name}.example:443`, `xn--bcher-kva.${name}.example:443`],
  ]
}

const label63 = 'a'.repeat(63)
const badSyntax = [
  '',
  'example.com',
  'example.com:',
  ':443',
  'example.com:443:443',
  'example.com:x',
  'example.com:0',
  'example.com:0443',
  'example.com:65536',
  'example.com:-1',
  'https://example.com:443',
  'exa mple.com:443',
  'exa_mple.com:443',
  '-a.example.com:443',
  'a-.example.com:443',
  'a..example.com:443',
  '.example.com:443',
  `${label63}a.example.com:443`,
  `${Array(4).fill(label63).join('.')}.com:443`,
  'user@example.com:443',
  'example.com/path:443',
]
const badWildcards = ['*:443', 'a*.example.com:443', 'a.*.example.com:443', '**.example.com:443', '*.*.example.com:443']

eachTarget(
  (target) => {
    let world: World
    before(() => {
      world = new World(target.api)
    })

    for (const kind of [...named, 'tcp_edge'] as const) {
      const fresh = kind === 'tcp_edge' ? uniqueAddress : uniqueName
      describe(kind, () => {
        test('shows null while there are none, and `[]` clears them', async () => {
          const { path, body } = await world.make(kind)
          assert.equal(body.hostports, null)
          assert.equal((await world.make(kind, { hostports: [] })).body.hostports, null)
          const hostports = [fresh(), fresh()]
          assert.deepEqual((await target.api.update(path, { hostports })).hostports, hostports)
          for (const patch of [{}, { description: 'x' }, { hostports: null }]) {
            assert.deepEqual((await target.api.update(path, patch)).hostports, hostports)
          }
          assert.equal((await target.api.update(path, { hostports: [] })).hostports, null)
          assert.equal((await target.api.get(path)).hostports, null)
          await world.make(kind, { hostports })
        })

        test('keeps a hostport until it drops it or is deleted', async () => {
          const [one, two] = [fresh(), fresh()]
          const edge = await world.make(kind, { hostports: [one] })
          const taken = async (hostport: string) => {
            const body = { description: 'late', hostports: [fresh(), hostport] }
            const { msg, status_code } = await target.api.refused(
              'ERR_HOSTPORT_IN_USE',
              'POST',
              edge.path.replace(/\/\w+$/, ''),
              { body },
            )
            assert.equal(status_code, 409)
            assert.ok(msg.includes(hostport), msg)
          }
          await taken(one)
          const other = await world.make(kind, { hostports: [fresh()] })
          await target.api.refused('ERR_HOSTPORT_IN_USE', 'PATCH', other.path, {
            body: { description: 'late', hostports: [one] },
          })
          assert.deepEqual(await target.api.get(other.path), other.body)
          // An edge may claim again what it already has.
          await target.api.update(edge.path, { hostports: [two, one] })
          await taken(two)
          await target.api.update(edge.path, { hostports: [two] })
          await target.api.update(other.path, { hostports: [one] })
          await target.api.delete(edge.path)
          await world.make(kind, { hostports: [two] })
        })

        test('refuses the same hostport twice in one request', async () => {
          const hostport = fresh()
          const body = { hostports: [fresh(), hostport, hostport] }
          const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'POST', await world.collection(kind), { body })
          assert.match(msg, /`hostports\[2\]`/)
          await world.make(kind, { hostports: [hostport] })
        })

        // Refused before the store is used, so one store is enough.
        if (target.name === 'postgres') return

        test('refuses bad syntax and names the entry, in POST and PATCH', async () => {
          const { path } = await world.make(kind, { hostports: [fresh()] })
          const before = await target.api.get(path)
          for (const hostport of badSyntax) {
            for (const [method, address] of [
              ['POST', await world.collection(kind)],
              ['PATCH', path],
            ] as const) {
              const body = { hostports: [fresh(), hostport] }
              const { status, body: answer, text } = await target.api.send(method, address, { body })
              assert.equal(status, 400, `${hostport}: ${text}`)
              assert.match(answer.msg, /`hostports\[1\]`/)
            }
          }
          for (const hostports of ['a.example.com:443', [443], {}]) {
            await target.api.refused('ERR_INVALID_VALUE', 'PATCH', path, { body: { hostports } })
          }
          assert.deepEqual(await target.api.get(path), before)
        })
      })
    }

    for (const kind of named) {
      describe(`the names of ${kind}`, () => {
        test('are shown as sent, but in lower case', async () => {
          for (const hostport of spellings().flat()) {
            const { path, body } = await world.make(kind, { hostports: [hostport] })
            assert.deepEqual(body.hostports, [hostport.toLowerCase()])
            assert.deepEqual((await target.api.get(path)).hostports, [hostport.toLowerCase()])
            await target.api.delete(path)
          }
        })

        for (const other of named) {
          test(`cannot be used by a ${other} too, however they are spelled`, async () => {
            for (const forms of spellings()) {
              const edge = await world.make(kind, { hostports: [String(forms[0])] })
              for (const hostport of forms) {
                const body = { hostports: [hostport] }
                await target.api.refused('ERR_HOSTPORT_IN_USE', 'POST', await world.collection(other), { body })
              }
              await target.api.delete(edge.path)
            }
          })
        }

        test('count as one in a request, however they are spelled', async () => {
          for (const [first, ...others] of spellings()) {
            for (const again of others) {
              const body = { hostports: [first, again] }
              await target.api.refused('ERR_INVALID_VALUE', 'POST', await world.collection(kind), { body })
            }
          }
        })

        test('may have a wildcard as the first label, which does not claim the names below it', async () => {
          const name = unique('wild')
          await world.make(kind, { hostports: [`*.${name}.example.com:443`] })
          await world.make(kind, { hostports: [`a.${name}.example.com:443`, `${name}.example.com:443`] })
          for (const hostport of badWildcards) {
            const body = { hostports: [hostport] }
            const { msg } = await target.api.refused('ERR_BAD_HOSTPORT', 'POST', await world.collection(kind), { body })
            assert.match(msg, /`hostports\[0\]`/)
          }
        })

        test('have a port that the server serves', async () => {
          for (const port of [80, 444, 20_000, 65_535]) {
            const body = { hostports: [`${unique('host')}.example.com:${port}`] }
            const { msg, status_code } = await target.api.refused(
              'ERR_BAD_HOSTPORT_PORT',
              'POST',
              await world.collection(kind),
              { body },
            )
            assert.equal(status_code, 400)
            assert.match(msg, /`hostports\[0\]`.*443/)
          }
        })

        if (target.platform) {
          test('are the same at 443 and at the public port', async () => {
            const name = `${unique('host')}.example.com`
            const { body } = await world.make(kind, { hostports: [`${name}:${PUBLIC_PORT}`] })
            assert.deepEqual(body.hostports, [`${name}:${PUBLIC_PORT}`])
            for (const other of named) {
              const again = { hostports: [`${name}:443`] }
              await target.api.refused('ERR_HOSTPORT_IN_USE', 'POST', await world.collection(other), { body: again })
            }
            const both = uniqueName()
            const twice = { hostports: [both, both.replace(':443', `:${PUBLIC_PORT}`)] }
            await target.api.refused('ERR_INVALID_VALUE', 'POST', await world.collection(kind), { body: twice })
          })
        }
      })
    }

    describe('the addresses of tcp_edge', () => {
      test('differ by port only; the host is shown', async () => {
        const hostport = uniqueAddress().replace('tcp.', 'TCP.')
        const port = hostport.split(':')[1]
        const { body } = await world.make('tcp_edge', { hostports: [hostport] })
        assert.deepEqual(body.hostports, [hostport.toLowerCase()])
        const another = { hostports: [`other.example.com:${port}`] }
        await target.api.refused('ERR_HOSTPORT_IN_USE', 'POST', '/edges/tcp', { body: another })
        const free = uniqueAddress().split(':')[1]
        const twice = { hostports: [`a.example.com:${free}`, `b.example.com:${free}`] }
        await target.api.refused('ERR_INVALID_VALUE', 'POST', '/edges/tcp', { body: twice })
      })

      test('have one of the TCP ports of the server', async () => {
        for (const port of [443, 1023, 19_999, 21_000, 65_535]) {
          const body = { hostports: [`tcp.example.com:${port}`] }
          const { msg, status_code } = await target.api.refused('ERR_BAD_HOSTPORT_PORT', 'POST', '/edges/tcp', { body })
          assert.equal(status_code, 400)
          assert.match(msg, /`hostports\[0\]`.*20000/)
        }
      })
    })

    test('when many requests claim one name at once, exactly one gets it', async () => {
      const hostports = [uniqueName()]
      const asked = Array.from({ length: 10 }, (_, i) =>
        target.api.send('POST', i % 2 === 0 ? '/edges/tls' : '/edges/https', { body: { hostports } }),
      )
      const statuses = (await Promise.all(asked)).map(({ status }) => status)
      assert.deepEqual(
        statuses.toSorted((a, b) => a - b),
        [201, ...Array(9).fill(409)],
      )
    })
  },
  { flags: { 'public-https-port': String(PUBLIC_PORT) } },
)
