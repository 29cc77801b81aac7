import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { DEFAULT_INSPECT } from '../inspect/listen-address.ts'
import { ConfigError } from './config-error.ts'
import { type AgentFlags, readAgentConfig } from './connection.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-inspect-'))
after(() => rmSync(root, { recursive: true }))

interface Files {
  readonly local?: string
  readonly home?: string
  readonly ngrok?: string
}

async function read({ local, home, ngrok }: Files, flags: AgentFlags = {}) {
  const cwd = mkdtempSync(join(root, 'cwd-'))
  mkdirSync(join(cwd, 'home/.config/postern'), { recursive: true })
  if (local !== undefined) writeFileSync(join(cwd, 'postern-agent.yml'), local)
  if (home !== undefined) writeFileSync(join(cwd, 'home/.config/postern/agent.yml'), home)
  if (ngrok !== undefined) writeFileSync(join(cwd, 'ngrok.yml'), ngrok)
  const { inspectListen, notes } = await readAgentConfig(flags, { cwd, env: { HOME: join(cwd, 'home') } })
  assert.deepEqual(notes, [])
  return inspectListen
}

const at = (host: string, port: number) => ({ host, port, isDefault: false })

describe('where the inspector listens', () => {
  for (const [name, files, flags, listen] of [
    ['is the usual address', {}, {}, DEFAULT_INSPECT],
    ['is what a file says', { local: 'inspect_listen: 127.0.0.1:5000' }, {}, at('127.0.0.1', 5000)],
    ['is nowhere when a file says so', { local: 'inspect_listen: false' }, {}, false],
    ['is what the own file says', { home: 'inspect_listen: 0.0.0.0:5000' }, {}, at('0.0.0.0', 5000)],
    ['is what a flag says', { local: 'inspect_listen: 5000' }, { inspectListen: 'false' }, false],
    ['is an address in a flag', { local: 'inspect_listen: false' }, { inspectListen: ':6000' }, at('127.0.0.1', 6000)],
    [
      'is `web_addr` of an ngrok.yml',
      { ngrok: 'version: 2\nweb_addr: localhost:4044\n' },
      ngrok(),
      at('127.0.0.1', 4044),
    ],
    ['is nowhere in an ngrok.yml', { ngrok: 'version: 3\nagent:\n  web_addr: false\n' }, ngrok(), false],
    [
      'is anywhere in a named file',
      { local: 'inspect_listen: 0.0.0.0:1' },
      { config: 'postern-agent.yml' },
      at('0.0.0.0', 1),
    ],
  ] as const) {
    test(name, async () => assert.deepEqual(await read(files, flags), listen))
  }

  for (const [name, files, flags, problem] of [
    [
      'text that is no address',
      { local: 'inspect_listen: here' },
      {},
      /^`inspect_listen` \(\S+ line 1\) must be an address/,
    ],
    ['a flag that is none', {}, { inspectListen: 'here' }, /^`inspect_listen` \(--inspect-listen\) must be an address/],
    [
      'a port that is none',
      { ngrok: 'version: 2\nweb_addr: localhost\n' },
      ngrok(),
      /^ngrok\.yml:2: `web_addr` must be an/,
    ],
    [
      'a file of somebody else that opens it to others',
      { local: 'inspect_listen: 0.0.0.0:4040' },
      {},
      /^`inspect_listen` \(postern-agent\.yml\) must be a loopback address/,
    ],
  ] as const) {
    test(`is not ${name}`, async () => {
      const error = await read(files, flags).catch((fault: unknown) => fault)
      assert.ok(error instanceof ConfigError)
      assert.match(error.problems.join('\n'), problem)
    })
  }
})

function ngrok(): AgentFlags {
  return { config: 'ngrok.yml' }
}
