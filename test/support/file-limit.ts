/**
 * Loaded before each test file: ends its process when it runs for too long, since node's own limit is per test and
 * waits for ever on a file that is done but does not end.
 */
import { writeSync } from 'node:fs'
import { relative } from 'node:path'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const limitMs = Number(process.env.POSTERN_TEST_FILE_LIMIT_MS)

// A test may start threads of its own, and they load this too.
if (!isMainThread && typeof workerData?.limitedFile === 'string') {
  setTimeout(() => {
    writeSync(2, `${workerData.limitedFile} ran for more than ${limitMs / 1000} s and was killed\n`)
    process.kill(process.pid, 'SIGKILL')
  }, limitMs)
} else if (isMainThread && limitMs > 0 && process.env.NODE_TEST_CONTEXT !== undefined) {
  // In a thread, so that an endless loop cannot hold it up.
  const limitedFile = relative('.', process.argv[1] ?? '')
  new Worker(new URL(import.meta.url), { workerData: { limitedFile }, execArgv: [] }).unref()
}
