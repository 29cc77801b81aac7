/** Shared fields of resources: limits in bytes, what a PATCH keeps, ids in bodies (D8 to D11, contract part 8). */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Json } from '../support/api-client.ts'
import { eachTarget } from './target.ts'
import { kindsOn } from './ways-to-the-store.ts'
import { kinds, unknownId, World } from './world.ts'

const limits = { description: 255, metadata: 4096 }
const fields = ['description', 'metadata'] as const

function words({ description, metadata }: Json): Json {
  return { description, metadata }
}

/** Texts of exactly this many bytes, made of two-byte and of four-byte characters. */
function texts(bytes: number): string[] {
  return ['é', '🙂'].map((character) => {
    const size = Buffer.byteLength(character)
    return character.repeat(Math.floor(bytes / size)) + 'x'.repeat(bytes % size)
  })
}

const awkward = [
  '  spaces  ',
  '"quotes" \\ /',
  'line\nbreak\ttab',
  '<b>&amp;</b>',
  "'; DROP TABLE x; --",
  'e\u0301',
  '\u202e',
]

eachTarget((target) => {
  let world: World
  before(() => {
    world = new World(target.api)
  })

  for (const kind of kindsOn(target).filter((name) => kinds[name].isDescribed)) {
    describe(`description and metadata of ${kind}`, () => {
      test('take up to 255 and 4096 bytes', async () => {
        const { path } = await world.make(kind)
        for (const i of [0, 1]) {
          const longest = { description: texts(limits.description)[i] ?? '', metadata: texts(limits.metadata)[i] ?? '' }
          for (const field of fields) assert.equal(Buffer.byteLength(longest[field]), limits[field])
          assert.deepEqual(words((await world.make(kind, longest)).body), longest)
          assert.deepEqual(words(await target.api.update(path, longest)), longest)
        }
        const kept = await target.api.get(path)
        const least = await world.least(kind)
        const collection = await world.collection(kind)
        for (const field of fields) {
          for (const text of texts(limits[field] + 1)) {
            const tries = [
              ['POST', collection, { ...least, [field]: text }],
              ['PATCH', path, { [field]: text }],
            ] as const
            for (const [method, address, body] of tries) {
              const { msg, status_code } = await target.api.refused('ERR_FIELD_TOO_LONG', method, address, { body })
              assert.equal(status_code, 400)
              assert.match(msg, RegExp(`\`${field}\`.*${limits[field]}`))
            }
          }
        }
        assert.deepEqual(await target.api.get(path), kept)
      })

      test('are empty strings while unset, kept by a PATCH without them or with null, cleared by ""', async () => {
        const { path, body } = await world.make(kind)
        const unset = { description: '', metadata: '' }
        assert.deepEqual(words(body), unset)
        assert.deepEqual(words((await world.make(kind, { description: null, metadata: null })).body), unset)
        for (const [field, other] of [fields, fields.toReversed()] as [string, string][]) {
          assert.equal((await target.api.update(path, { [field]: 'set' }))[field], 'set')
          for (const patch of [{}, { [other]: 'other' }, { [field]: null }]) {
            assert.equal((await target.api.update(path, patch))[field], 'set', JSON.stringify(patch))
          }
          const cleared = await target.api.update(path, { [field]: '' })
          assert.deepEqual([cleared[field], cleared[other]], ['', 'other'])
          assert.equal((await target.api.get(path))[field], '')
        }
      })

      test('are texts, kept exactly as sent', async () => {
        const { path } = await world.make(kind)
        for (const text of awkward) {
          const sent = { description: text, metadata: text }
          assert.deepEqual(words(await target.api.update(path, sent)), sent)
        }
        for (const field of fields) {
          for (const value of [1, true, {}, ['a']]) {
            const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'PATCH', path, { body: { [field]: value } })
            assert.match(msg, RegExp(`\`${field}\``))
          }
        }
      })
    })
  }

  for (const kind of kindsOn(target)) {
    describe(`the body of a ${kind}`, () => {
      test('may hold the ids of the path in a PATCH, and no others', async () => {
        const { id, path, body } = await world.make(kind)
        const ids = { id, ...(body.edge_id !== undefined && { edge_id: body.edge_id }) }
        const expected = 'token' in body ? { ...body, token: null } : body
        assert.deepEqual(await target.api.update(path, ids), expected)
        for (const name of Object.keys(ids)) {
          for (const wrong of [unknownId(`${id.split('_')[0]}_`), '', 7]) {
            const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'PATCH', path, { body: { [name]: wrong } })
            assert.ok(msg.includes(`\`${name}\``), msg)
          }
        }
        assert.deepEqual(await target.api.get(path), expected)
      })

      // Refused before the store is used, so one store is enough.
      if (target.name === 'postgres') return

      test('with an unknown field is refused, and the right name is suggested', async () => {
        const { path } = await world.make(kind)
        const least = await world.least(kind)
        const [known] = kinds[kind].isDescribed ? ['description'] : ['active']
        const tries = [
          ['POST', await world.collection(kind), { ...least, [`${known}s`]: 'x' }],
          ['PATCH', path, { [`${known}s`]: 'x' }],
        ] as const
        for (const [method, address, body] of tries) {
          const { msg } = await target.api.refused('ERR_UNKNOWN_FIELD', method, address, { body })
          assert.ok(msg.includes(`\`${known}s\``) && msg.includes(`\`${known}\``), msg)
        }
        for (const name of ['uri', 'created_at', '__proto__', 'constructor', '']) {
          const { status, body, text } = await target.api.send('PATCH', path, {
            body: `{${JSON.stringify(name)}: "x"}`,
          })
          assert.equal(status, 400, text)
          assert.ok(body.msg.includes(`\`${name}\``) || name === '', body.msg)
        }
      })

      test('is an object', async () => {
        const { path } = await world.make(kind)
        for (const body of ['[]', '"x"', '1', 'null', 'true']) {
          assert.equal((await target.api.send('PATCH', path, { body })).status, 400, body)
        }
      })
    })
  }

  test('a field that cannot be changed is refused in a PATCH, not ignored', async () => {
    const cases = [
      ['api_key', { owner_id: 'x' }],
      ['api_key', { token: 'x' }],
      ['ssh_credential', { owner_id: 'x' }],
      ['credential', { owner_id: 'x' }],
      ['certificate_authority', { ca_pem: 'x' }],
      ['ssh_certificate_authority', { private_key_type: 'rsa' }],
      ['ssh_user_certificate', { principals: ['root'] }],
      ['ssh_host_certificate', { valid_until: '2040-01-01T00:00:00Z' }],
      ['https_edge', { routes: [] }],
      ['tunnel_group_backend', { tunnels: [] }],
    ] as const
    for (const [kind, body] of cases) {
      const { path } = await world.make(kind)
      const { msg } = await target.api.refused('ERR_UNKNOWN_FIELD', 'PATCH', path, { body })
      assert.ok(msg.includes(`\`${Object.keys(body)[0]}\``), msg)
    }
  })
})
