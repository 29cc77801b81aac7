/** Runs the test files of its arguments in this process, one after the other, each as its own suite. */
import { once } from 'node:events'
import { describe } from 'node:test'
import { pathToFileURL } from 'node:url'
import { fileEnds, speaks, tell } from './report-tests.ts'

// Node keeps the process awake for a test that waits only for what does not, but not once a first suite has ended.
const awake = setInterval(() => {}, 60_000)
for (const file of process.argv.slice(2)) {
  const ended = once(fileEnds, 'ended')
  tell({ began: file })
  // In the output itself: that and the reports are read in any order.
  process.stdout.write(speaks(file))
  // Hooks at the top of a file belong to its suite: they run when its turn comes, and end before the next is loaded.
  describe(file, async () => {
    await import(pathToFileURL(file).href)
  })
  await ended
}
clearInterval(awake)
