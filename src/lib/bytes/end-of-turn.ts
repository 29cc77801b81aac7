/**
 * Puts work off until all that came in this turn of the event loop was read, and then does it in a row: the same code
 * over many connections finds itself in the processor's cache, which code that takes turns with all the rest does not.
 */

let tasks: (() => void)[] = []

/** Those that are put off while they run are done in the next turn. */
export function atEndOfTurn(task: () => void): void {
  if (tasks.length === 0) setImmediate(runAll)
  tasks.push(task)
}

function runAll(): void {
  const due = tasks
  tasks = []
  let done = 0
  try {
    while (done < due.length) due[done++]?.()
  } finally {
    // One that throws does not take the others with it.
    for (const task of due.slice(done)) atEndOfTurn(task)
  }
}
