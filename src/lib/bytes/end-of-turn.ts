/** Defers work until everything that arrived in this turn of the event loop has been read, and then runs it back to back. */

let tasks: (() => void)[] = []

/** Runs `task` at the end of this turn; a task that another task adds runs in the next turn. */
export function atEndOfTurn(task: () => void): void {
  if (tasks.length === 0) setImmediate(runAll)
  tasks.push(task)
}

/** Running the same code for many connections in a row keeps it in the processor's cache. */
function runAll(): void {
  const due = tasks
  tasks = []
  let done = 0
  try {
    while (done < due.length) due[done++]?.()
  } finally {
    // A task that throws must not keep the others from running.
    for (const task of due.slice(done)) atEndOfTurn(task)
  }
}
