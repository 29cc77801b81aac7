/** Lets other work use the event loop in the middle of long work. */

/** How long work goes on before it pauses for others, in milliseconds. */
const TURN_MS = 5

/** Paused work, in order. One piece continues in each round of the loop, so that many pieces block it no longer than one. */
const waiting: (() => void)[] = []

/** Resolves in a later round of the event loop in which no other paused work continues. */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(resumeNext)
  })
}

function resumeNext(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(resumeNext)
}

/**
 * Returns a function to await between two steps of the work; it pauses once the work has run for long enough.
 *
 * @example
 * const breath = othersTurn()
 * for (const each of many) {
 *   step(each)
 *   await breath()
 * }
 */
export function othersTurn(now = () => performance.now()): () => Promise<void> | undefined {
  let until = now() + TURN_MS
  return () => {
    if (now() < until) return undefined
    return ownTurn().then(() => {
      until = now() + TURN_MS
    })
  }
}
