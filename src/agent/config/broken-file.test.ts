import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { Secret } from '../../lib/secrets/secret.ts'
import { ConfigError } from './config-error.ts'
import { type AgentFlags, readAgentConfig } from './connection.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-broken-'))
after(() => rmSync(root, { recursive: true }))

const BROKEN = 'remote_management: false\ntunnels: {web: {port: 3000}}'
const FAULT = /^`tunnels\.web\.port` \(\w[\w-]*\.yml line 2\) is not a known key; did you mean `addr`\?$/

function read(name: string, flags: AgentFlags, env: Record<string, string> = {}, text = BROKEN) {
  const cwd = mkdtempSync(join(root, 'cwd-'))
  const path = join(cwd, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  return readAgentConfig(flags, { cwd, env: { HOME: join(cwd, 'home'), ...env } })
}

async function problemsOf(...given: Parameters<typeof read>): Promise<readonly string[]> {
  const error: unknown = await read(...given).then(
    () => assert.fail('the configuration was accepted'),
    (fault: unknown) => fault,
  )
  assert.ok(error instanceof ConfigError, String(error))
  return error.problems
}

const enough = { server: 'localhost:7443', authtoken: new Secret('token'), hasTunnel: true }
const inHome = 'home/.config/postern/agent.yml'

for (const name of ['postern-agent.yml', inHome]) {
  test(`a broken ${name} does not stop a tunnel of the command line, and the server may not command the agent`, async () => {
    const { notes, remoteManagement, updateChecks, server } = await read(name, enough)
    assert.match(notes[0] ?? '', FAULT)
    assert.match(notes[1] ?? '', /\.yml is ignored; the server cannot restart, stop or update this agent$/)
    assert.deepEqual([notes.length, remoteManagement, updateChecks, server.host], [2, false, false, 'localhost'])
    const env = { POSTERN_SERVER: 'localhost:7443', POSTERN_AUTHTOKEN: 'token' }
    assert.equal((await read(name, { hasTunnel: true }, env)).notes.length, 2)
  })

  test(`a broken ${name} stops a command that may need it`, async () => {
    for (const less of [{ server: undefined }, { authtoken: undefined }, { hasTunnel: false }]) {
      const problems = await problemsOf(name, { ...enough, ...less })
      assert.equal(problems.length, 1)
      assert.match(problems[0] ?? '', FAULT)
    }
  })
}

test('a broken file that was named stops every command', async () => {
  assert.match((await problemsOf('named.yml', { ...enough, config: 'named.yml' }))[0] ?? '', FAULT)
})

test('a port beside an address suggests the address too', async () => {
  const both = 'tunnels:\n  {web: {addr: 80, port: 3000}}'
  assert.match((await problemsOf('postern-agent.yml', {}, {}, both))[0] ?? '', FAULT)
})
