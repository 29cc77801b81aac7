/** `postern login` on a real terminal: each question is shown while it waits, and the secret is not. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ownLauncher } from '../support/own-launcher.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { screenOf } from '../support/screen.ts'
import { until } from '../support/until.ts'

const missing = !/util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '')
const why = missing && '`script` of util-linux, which makes a terminal, is missing'

describe('on a terminal', { skip: why }, () => {
  let platform: Platform
  let home = ''
  before(async () => {
    platform = await startPlatform()
    home = mkdtempSync(join(tmpdir(), 'postern-login-'))
  })
  after(() => platform.stop())
  after(() => rmSync(home, { recursive: true, force: true }))

  test('each question is shown while it waits, and stays before its answer', async (t) => {
    const command = `'${process.execPath}' '${ownLauncher}' login`
    const { PATH = '' } = process.env
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      env: { HOME: home, PATH, TERM: 'xterm' },
      cwd: home,
    })
    const ended = once(child, 'close')
    t.after(async () => {
      child.kill('SIGKILL')
      await ended
    })
    let sent = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      sent += text
    })
    const answers: readonly [question: string, answer: string][] = [
      ['Server [localhost:7443]:', platform.agents],
      ['Authtoken:', platform.authtoken],
      ['CA file [the CAs of this machine]:', platform.caFile],
    ]
    for (const [question, answer] of answers) {
      await until(`the last line is ${question}`, () => screenOf(sent).at(-1) === question)
      child.stdin.write(`${answer}\r`)
    }
    await ended
    const [server, secret, ca, done = ''] = screenOf(sent)
    assert.equal(server, `Server [localhost:7443]: ${platform.agents}`)
    assert.equal(secret, 'Authtoken:')
    assert.equal(ca, `CA file [the CAs of this machine]: ${platform.caFile}`)
    assert.match(done, /^Logged in to 127\.0\.0\.1:\d+ \(region local\); saved in /)
    assert.ok(!sent.includes(platform.authtoken), 'the authtoken is not shown')
    assert.ok(readFileSync(join(home, '.config/postern/agent.yml'), 'utf8').includes(platform.authtoken))
  })
})
