/** The commands of docs/ssh.md, run as they stand there, but for the host and the port of this test. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { splitWords } from '../../../src/ssh/split-words.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { type Key, keyFolder, makeKey, missing, ssh } from './openssh.ts'

const page = readFileSync(new URL('../../../docs/ssh.md', import.meta.url), 'utf8')
const commands = [...page.matchAll(/^\| `ssh (.*?) -p 2222 HOST (.*?)` \|/gm)].map(([, args = '', command = '']) => ({
  args,
  command,
}))

describe('the commands of docs/ssh.md', { skip: missing }, () => {
  let platform: Platform
  let key: Key

  before(async () => {
    platform = await startPlatform()
    key = makeKey(keyFolder(), 'key')
    await platform.admin.create('/ssh_credentials', { public_key: key.publicLine })
  })
  after(() => platform.stop())

  test('are found', () => assert.equal(commands.length, 8))

  for (const { args, command } of commands) {
    test(`ssh ${args} HOST ${command}`, async (t) => {
      const client = ssh(t, platform, key, splitWords(args) ?? [], [command])
      await client.says(/Forwarding +(https?:\/\/|tls:\/\/|tcp:\/\/|labels )/)
      await client.stop()
    })
  }
})
