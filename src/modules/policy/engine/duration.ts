/** Reads durations as people write them: `90s`, `10m`, `1h30m`. */
import { BadInput } from '../../../lib/shape/bad-input.ts'

/** The seconds of a duration; throws an `Error` that shows the right form. */
export function readDuration(text: string): number {
  const [, hours, minutes, seconds] = /^(?=\d)(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$/.exec(text) ?? []
  if (hours === undefined && minutes === undefined && seconds === undefined) {
    throw new BadInput('A duration is a number with `s`, `m` or `h`, such as `90s`, `10m` or `1h`.')
  }
  return Number(hours ?? 0) * 3600 + Number(minutes ?? 0) * 60 + Number(seconds ?? 0)
}
