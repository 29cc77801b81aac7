import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultOf } from './api-caller.ts'

test('a refusal of the API becomes a sentence, with its field and its operation', () => {
  const body = { error_code: 'ERR_X', msg: 'no such key', details: { field: 'api_key', operation_id: 'op_1' } }
  assert.deepEqual(faultOf(401, JSON.stringify(body)), {
    ...{ kind: 'signed_out', text: 'No such key', code: 'ERR_X', field: 'api_key', operation: 'op_1' },
  })
  const { text } = faultOf(400, JSON.stringify({ msg: '`addr` is no port', details: { err: 'too large' } }))
  assert.equal(text, '`addr` is no port: too large')
})

test('an error body that is not from the API is described by its status', () => {
  for (const body of ['<html>', '[]', '{"msg": 1}']) {
    assert.deepEqual(
      [faultOf(502, body).kind, faultOf(502, body).text],
      ['refused', 'The request failed with status 502.'],
    )
  }
})
