/** Runs several test files in one process, one after the other, each as its own suite (`group-tests.ts`). */
import { relative } from 'node:path'
import { after, before, describe } from 'node:test'
import { pathToFileURL } from 'node:url'
import { countCosts } from './file-costs.ts'

/** Hooks at the top of a file belong to its suite: they run when its turn comes, and end before the next. */
export function shareProcess(files: readonly string[], note = ''): void {
  const count = countCosts()
  let loaded = Promise.resolve()
  for (const file of files) {
    const former = loaded
    const { promise, resolve } = Promise.withResolvers<void>()
    loaded = promise
    describe(relative('.', file) + note, async () => {
      before(() => tellTurn(file))
      after(() => count(relative('.', file) + note))
      // Files are loaded in order too, so that a failure to load is always the same.
      await former
      try {
        await import(pathToFileURL(file).href)
      } finally {
        resolve()
      }
    })
  }
}

/** Tells the thread that enforces the time limit (`file-limit.ts`) which file runs. */
function tellTurn(file: string): void {
  const turns = new BroadcastChannel('turns of test files')
  turns.postMessage(relative('.', file))
  turns.close()
}
