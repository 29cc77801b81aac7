/**
 * Loaded before each test file: kills its process when it runs for too long. Node's own limit is per test, and it waits
 * for ever for a file whose tests are done but whose process does not exit.
 */
import { writeSync } from 'node:fs'
import { relative } from 'node:path'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const limitMs = Number(process.env.POSTERN_TEST_FILE_LIMIT_MS)

/** Repeated in `share-process.ts`, which must not load this file a second time. */
const TURNS = 'turns of test files'

// Threads that a test starts load this file too.
if (!isMainThread && typeof workerData?.limitedFile === 'string') {
  let running: string = workerData.limitedFile
  const overdue = setTimeout(() => {
    writeSync(2, `${running} ran for more than ${limitMs / 1000} s and was killed\n`)
    process.kill(process.pid, 'SIGKILL')
  }, limitMs)
  // A process that several files share announces whose turn it is; each file has the full limit.
  new BroadcastChannel(TURNS).onmessage = ({ data }) => {
    running = String(data)
    overdue.refresh()
  }
} else if (isMainThread && limitMs > 0 && process.env.NODE_TEST_CONTEXT !== undefined) {
  // In a thread, so that an endless loop cannot block the limit.
  const limitedFile = relative('.', process.argv[1] ?? '')
  new Worker(new URL(import.meta.url), { workerData: { limitedFile }, execArgv: [] }).unref()
}
