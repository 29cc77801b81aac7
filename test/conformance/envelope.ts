/** Checks the error body that all failures of the API share, and compares two failures. */
import assert from 'node:assert/strict'
import type { Answer } from '../support/api-client.ts'
import type { RawAnswer } from '../support/raw-http.ts'

const OPERATION_ID = /^op_[0-9A-Za-z]{27}$/

/** Asserts the error body with this status and, if given, this code; returns the operation id. */
export function assertEnvelope(answer: Answer | RawAnswer, status: number, code?: string): string {
  const { body, text } = answer
  assert.equal(answer.status, status, text)
  assert.equal(header(answer, 'content-type')?.split(';')[0], 'application/json', `${status} ${text}`)
  assert.deepEqual(Object.keys(body ?? {}).sort(), ['details', 'error_code', 'msg', 'status_code'], text)
  assert.match(body.error_code, /^ERR_[A-Z0-9_]+$/)
  if (code !== undefined) assert.equal(body.error_code, code, text)
  assert.equal(body.status_code, status)
  assert.ok(typeof body.msg === 'string' && body.msg !== '', text)
  for (const [name, value] of Object.entries(body.details)) assert.equal(typeof value, 'string', name)
  assert.match(body.details.operation_id, OPERATION_ID)
  assert.equal(header(answer, 'service-operation-id'), body.details.operation_id)
  return body.details.operation_id
}

/** The status, headers and body of a failure, without the parts that differ in every answer. */
export function comparable(answer: Answer | RawAnswer): unknown {
  const headers = [...answer.headers].map(([name, value]) => [name.toLowerCase(), String(value)])
  const shared = headers.filter(([name]) => name !== 'date' && name !== 'service-operation-id')
  const id = answer.body?.details?.operation_id
  return {
    status: answer.status,
    headers: Object.fromEntries(shared),
    text: typeof id === 'string' ? answer.text.replace(id, 'op_') : answer.text,
  }
}

export function header({ headers }: Answer | RawAnswer, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined
  return headers.get(name)?.join(', ')
}
