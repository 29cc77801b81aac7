import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CallFault, CallOutcome } from './api-caller.ts'
import { pauseMs, type Reading, startPolling } from './polling.ts'

const away: CallFault = { kind: 'away', text: 'away', code: '', field: '', operation: '' }

/** A polling whose responses and clock the test controls. */
function polled() {
  const readings: Reading<number>[] = []
  const answers: ((outcome: CallOutcome<number>) => void)[] = []
  const waits: { ms: number; run: () => void }[] = []
  const time = { ms: 0 }
  const polling = startPolling<number>({
    load: () => new Promise((resolve) => answers.push(resolve)),
    everyMs: 3000,
    onChange: (reading) => readings.push(reading),
    now: () => time.ms,
    after(ms, run) {
      const wait = { ms, run }
      waits.push(wait)
      return () => void waits.splice(waits.indexOf(wait), waits.includes(wait) ? 1 : 0)
    },
  })
  const answer = async (outcome: CallOutcome<number>): Promise<void> => {
    answers.shift()?.(outcome)
    await new Promise(setImmediate)
  }
  const wait = (): number => {
    const next = waits.shift()
    next?.run()
    return next?.ms ?? -1
  }
  return { polling, readings, answers, waits, time, answer, wait }
}

test('pauses grow with the time a read takes, and with failures up to a limit', () => {
  assert.equal(pauseMs(3000, 10, 0), 3000)
  assert.equal(pauseMs(3000, 2000, 0), 8000)
  assert.deepEqual(
    [1, 2, 3, 20].map((failures) => pauseMs(3000, 10, failures)),
    [1000, 2000, 4000, 30_000],
  )
})

test('the last value stays while the server is away, with its time and the fault, and is replaced once it is back', async () => {
  const { readings, answer, wait, time } = polled()
  time.ms = 5
  await answer({ ok: true, value: 1 })
  assert.deepEqual(readings.at(-1), { value: 1, readAt: 5, fault: undefined })
  assert.equal(wait(), 3000)
  time.ms = 9000
  await answer({ ok: false, fault: away })
  assert.deepEqual(readings.at(-1), { value: 1, readAt: 5, fault: away })
  assert.equal(wait(), 1000)
  await answer({ ok: false, fault: away })
  assert.equal(wait(), 2000)
  await answer({ ok: true, value: 2 })
  assert.deepEqual(readings.at(-1), { value: 2, readAt: 9000, fault: undefined })
  assert.equal(wait(), 3000)
})

test('a refresh during a read causes one more read after it', async () => {
  const { polling, readings, answers, answer } = polled()
  polling.refresh()
  polling.refresh()
  assert.equal(answers.length, 1)
  await answer({ ok: true, value: 1 })
  assert.equal(answers.length, 1)
  await answer({ ok: true, value: 2 })
  assert.deepEqual(
    readings.map(({ value }) => value),
    [1, 2],
  )
  assert.equal(answers.length, 0)
})

test('nothing is reported after stop', async () => {
  const { polling, readings, waits, answer } = polled()
  polling.stop()
  await answer({ ok: true, value: 1 })
  assert.deepEqual([readings.length, waits.length], [0, 0])
})
