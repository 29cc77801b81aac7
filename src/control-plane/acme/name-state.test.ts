import assert from 'node:assert/strict'
import { test } from 'node:test'
import { statusOf } from './name-state.ts'

const at = Date.UTC(2030, 0, 1)
const shown = '2030-01-01T00:00:00Z'

test('the status of an existing certificate is only when it is renewed', () => {
  assert.deepEqual(statusOf({ certificateId: 'cert_1', renewsAt: at }, at), {
    renews_at: shown,
    provisioning_job: null,
  })
})

test('a name without a certificate waits for its turn, then for its order', () => {
  const job = { error_code: null, started_at: null, retries_at: null }
  const waiting = statusOf({}, at).provisioning_job
  assert.deepEqual(waiting, { ...job, msg: 'A certificate will be ordered.' })
  const ordering = statusOf({ order: { url: '', directory: '' }, startedAt: at }, at).provisioning_job
  assert.deepEqual(ordering, { ...job, msg: 'A certificate is being ordered.', started_at: shown })
})

test('a failure is shown with the time of the next attempt, even while the former certificate is served', () => {
  const fault = { code: 'CHALLENGE_FAILED', msg: 'Nobody there.' }
  const { renews_at, provisioning_job } = statusOf(
    { certificateId: 'cert_1', renewsAt: at, startedAt: at, failures: 2, fault },
    at,
  )
  assert.equal(renews_at, shown)
  const reported = { error_code: 'ERR_CHALLENGE_FAILED', msg: 'Nobody there.', started_at: shown, retries_at: shown }
  assert.deepEqual(provisioning_job, reported)
})
