/** Lets others have their turn of the event loop in the middle of long work. */
import { setImmediate } from 'node:timers/promises'

/** How long work goes on before others have their turn, in milliseconds. */
const TURN_MS = 5

/**
 * Gives back what to await between two steps of the work: it pauses once the work has gone on for long enough.
 *
 * @example
 * const breath = othersTurn()
 * for (const each of many) {
 *   step(each)
 *   await breath()
 * }
 */
export function othersTurn(): () => Promise<void> | undefined {
  let until = performance.now() + TURN_MS
  return () => {
    if (performance.now() < until) return undefined
    return setImmediate().then(() => {
      until = performance.now() + TURN_MS
    })
  }
}
