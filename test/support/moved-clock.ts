/**
 * Loaded into a server before anything else: moves its clock by what its environment says, and on SIGUSR2 by what a
 * file says, in milliseconds.
 *
 * Moves only what JavaScript calls the time. Timers and `performance.now()` go on, as when a system's clock is set.
 */
import { readFileSync } from 'node:fs'

const RealDate = Date
let offset = Number(process.env.POSTERNTEST_CLOCK_MS ?? 0)

class MovedDate extends RealDate {
  constructor(...given: []) {
    // With values it is a Date like any other; without, it is the current time.
    if (given.length === 0) super(RealDate.now() + offset)
    else super(...given)
  }

  static override now(): number {
    return RealDate.now() + offset
  }
}

globalThis.Date = MovedDate as DateConstructor
process.on('SIGUSR2', () => {
  offset = Number(readFileSync(process.env.POSTERNTEST_CLOCK_FILE ?? '', 'utf8'))
})
