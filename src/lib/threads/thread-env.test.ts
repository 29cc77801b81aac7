import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Starts a thread as the product does; it reports its compile cache folder and its environment variables. */
const program = (module: string): string => `
import { getCompileCacheDir } from 'node:module'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
if (isMainThread) {
  const { threadEnv } = await import(${JSON.stringify(module)})
  const said = (answer) => console.log(JSON.stringify({ ...answer, process: getCompileCacheDir() }))
  new Worker(new URL(import.meta.url), { env: threadEnv() }).on('message', said)
} else parentPort.postMessage({ thread: getCompileCacheDir(), variables: Object.keys(process.env) })
`

test('a thread gets the compile cache folder of its process, and no other environment variable', async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'postern-thread-')))
  after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'program.mjs')
  await writeFile(file, program(new URL('./thread-env.ts', import.meta.url).href))
  const { NODE_COMPILE_CACHE: _, ...env } = process.env

  const message = await run(process.execPath, [file], { env: { ...env, NODE_COMPILE_CACHE: folder, A_SECRET: 'x' } })
  const answer = JSON.parse(message.stdout)
  assert.ok(answer.process.startsWith(folder))
  assert.equal(answer.thread, answer.process)
  assert.deepEqual(answer.variables, ['NODE_COMPILE_CACHE'])

  const untold = await run(process.execPath, [file], { env: { ...env, A_SECRET: 'x' } })
  assert.deepEqual(JSON.parse(untold.stdout), { variables: [] })
})
