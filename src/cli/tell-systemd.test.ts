import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createLog } from '../lib/log/create-log.ts'
import { tellSystemd } from './tell-systemd.ts'

const folder = mkdtempSync(join(tmpdir(), 'postern-systemd-'))
after(() => rmSync(folder, { recursive: true }))
const found = join(folder, 'told')
// Replaces systemd's own program, and records how it was called.
writeFileSync(
  join(folder, 'systemd-notify'),
  `#!/bin/sh\necho "$@" > ${found}.next\nenv >> ${found}.next\nmv ${found}.next ${found}\n`,
  { mode: 0o755 },
)

/** A log, and the first line that is written to it. */
function listen() {
  const { promise: line, resolve } = Promise.withResolvers<string>()
  return { line, log: createLog({ format: 'json', destination: { write: resolve } }) }
}

async function written(): Promise<string> {
  while (!existsSync(found)) await new Promise((resolve) => setTimeout(resolve, 5))
  return readFileSync(found, 'utf8')
}

test('systemd is notified by its own program, which is given the socket and no secret', async () => {
  const env = {
    NOTIFY_SOCKET: '/run/x',
    PATH: `${folder}:/usr/bin:/bin`,
    POSTERN_BOOTSTRAP_API_KEY: 's',
    LISTEN_FDS: '1',
  }
  tellSystemd('READY=1', { env, log: listen().log })
  const text = await written()
  assert.match(text, /^READY=1\n/)
  assert.match(text, /^NOTIFY_SOCKET=\/run\/x$/m)
  assert.doesNotMatch(text, /POSTERN|LISTEN_FDS/)
})

test('nothing is run outside a unit that asks for it', async () => {
  rmSync(found, { force: true })
  const { line, log } = listen()
  tellSystemd('READY=1', { env: { PATH: '/nowhere' }, log })
  // This one fails, so its warning is the first line of the log.
  tellSystemd('STOPPING=1', { env: { NOTIFY_SOCKET: '/run/x', PATH: '/nowhere' }, log })
  const { state, msg, level } = JSON.parse(await line)
  assert.deepEqual([state, level], ['STOPPING=1', 'warn'])
  assert.match(msg, /^systemd could not be notified/)
  assert.ok(!existsSync(found))
})
