/** Lets others have their turn of the event loop in the middle of long work. */

/** How long work goes on before others have their turn, in milliseconds. */
const TURN_MS = 5

/** Long work that waits to go on, in order. One goes on in each round of the loop: many together hold it no longer than one. */
const waiting: (() => void)[] = []

/** Resolves in a later round of the event loop, in which no other long work goes on. */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(nextGoesOn)
  })
}

function nextGoesOn(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(nextGoesOn)
}

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
    return ownTurn().then(() => {
      until = performance.now() + TURN_MS
    })
  }
}
