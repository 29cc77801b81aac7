import assert from 'node:assert/strict'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { dnsCommand } from './dns-command.ts'

async function commandOf(t: TestContext, script: string): Promise<{ command: string; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-dns-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const command = join(folder, 'set record; $(touch x)')
  await writeFile(command, `#!/bin/sh\n${script}\n`)
  await chmod(command, 0o755)
  return { command, folder }
}

const env = { PATH: process.env.PATH, DNS_TOKEN: 'of the service', POSTERN_BOOTSTRAP_API_KEY: 'of the server' }

test('is called with the record and its value, without a shell and without secrets of the server', async (t) => {
  const { command, folder } = await commandOf(
    t,
    'echo "$#|$1|$2|$POSTERN_ACME_ACTION|$DNS_TOKEN|$POSTERN_BOOTSTRAP_API_KEY" >> "$(dirname "$0")/calls"',
  )
  const records = dnsCommand({ command, env })
  await records.present('_acme-challenge.example.com', '$(id) "x')
  await records.cleanup('_acme-challenge.example.com', 'y')
  const calls = await readFile(join(folder, 'calls'), 'utf8')
  assert.deepEqual(calls.trim().split('\n'), [
    '2|_acme-challenge.example.com|$(id) "x|present|of the service|',
    '2|_acme-challenge.example.com|y|cleanup|of the service|',
  ])
})

const failures: readonly [what: string, script: string, message: RegExp][] = [
  ['fails', 'echo "no such zone" >&2; exit 3', /failed with exit code 3: no such zone$/],
  ['never ends', 'exec sleep 60', /took too long and was killed/],
  ['says far too much', 'yes', /cannot be run \(ERR_CHILD_PROCESS_STDIO_MAXBUFFER\)|took too long/],
]
for (const [what, script, message] of failures) {
  test(`a program that ${what} has failed`, async (t) => {
    const { command } = await commandOf(t, script)
    const timeoutMs = what === 'never ends' ? 100 : 60_000
    await assert.rejects(dnsCommand({ command, env, timeoutMs }).present('r', 'v'), message)
  })
}

test('a missing program is reported', async () => {
  const records = dnsCommand({ command: '/nowhere/set-record', env })
  await assert.rejects(records.present('r', 'v'), /cannot be run \(ENOENT\)/)
})
