import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changesIn, draftOf, faultField, isFaultAt } from './draft.ts'
import { formSchema } from './form-schema.ts'

const ref = (id: string) => ({ id, uri: `http://localhost/x/${id}` })

test('a form is filled with what a resource has, and references become ids', () => {
  const form = formSchema({
    type: 'object',
    properties: {
      enabled: { type: ['boolean', 'null'], default: true },
      backend_id: { type: 'string' },
      ip_policy_ids: { type: 'array', items: { type: 'string' } },
      backends: { type: ['array', 'null'], items: { type: 'string' } },
      options: { type: 'object', properties: { certificate_id: { type: ['string', 'null'] } } },
      unset: { type: ['string', 'null'] },
    },
  })
  const shown = {
    id: 'x',
    enabled: false,
    backend: ref('bkd_1'),
    ip_policies: [ref('ipp_1'), ref('ipp_2')],
    backends: [ref('bkd_2')],
    options: { certificate: ref('cert_1') },
    unset: null,
  }
  assert.deepEqual(draftOf(form, shown), {
    enabled: false,
    backend_id: 'bkd_1',
    ip_policy_ids: ['ipp_1', 'ipp_2'],
    backends: ['bkd_2'],
    options: { certificate_id: 'cert_1' },
  })
})

test('only changed fields are sent, and cleared ones are sent as empty', () => {
  const before = { description: 'a', metadata: 'm', hostports: ['x:443'], active: true }
  assert.deepEqual(changesIn(before, before), {})
  assert.deepEqual(changesIn(before, { ...before, description: 'b' }), { description: 'b' })
  const { description: _, hostports: __, ...rest } = before
  assert.deepEqual(changesIn(before, rest), { description: '', hostports: [] })
  assert.deepEqual(changesIn({}, { name: 'n' }), { name: 'n' })
})

test('a refusal is about the field that it gives, or else the first one that its sentence names', () => {
  const form = formSchema({ type: 'object', properties: { hostports: { type: 'array' }, match: { type: 'string' } } })
  assert.equal(faultField({ field: 'match', text: '`hostports` is wrong' }, form), 'match')
  assert.equal(faultField({ field: '', text: '`hostports[1]`: `a:1` is taken' }, form), 'hostports[1]')
  assert.equal(faultField({ field: '', text: 'another route of `/x` has the same `match`' }, form), 'match')
  assert.equal(faultField({ field: '', text: 'the server is busy' }, form), '')
})

test('a fault belongs to its field, and to the nearest one that has an input', () => {
  assert.equal(isFaultAt('hostports[0]', 'hostports[0]', true), true)
  assert.equal(isFaultAt('hostports[0]', 'hostports', false), false)
  assert.equal(isFaultAt('policy.inbound[0].config["a"]', 'policy.inbound[0].config', true), true)
  assert.equal(isFaultAt('description2', 'description', true), false)
  assert.equal(isFaultAt('', 'description', true), false)
})
