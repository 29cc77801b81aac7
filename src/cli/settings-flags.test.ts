import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Command, CommanderError } from 'commander'
import { addSettingsFlags, settingsOf } from './settings-flags.ts'
import { testTerminal } from './testing/test-terminal.ts'

function read(args: readonly string[], env: Record<string, string> = {}) {
  const command = addSettingsFlags(new Command('serve'))
    .exitOverride()
    .configureOutput({ writeErr() {} })
  command.parse(args, { from: 'user' })
  return settingsOf(command, { ...testTerminal(), env, cwd: '/srv' })
}

const spelled: readonly [args: readonly string[], value: boolean][] = [
  [[], true],
  [['--ngrok-error-header'], true],
  [['--ngrok-error-header', 'on'], true],
  [['--ngrok-error-header', 'off'], false],
  [['--ngrok-error-header=off'], false],
  [['--ngrok-error-header', '--region', 'eu'], true],
]
for (const [args, value] of spelled) {
  test(`\`${['serve', ...args].join(' ')}\` has the header ${value ? 'on' : 'off'}`, () => {
    assert.equal(read(args).ngrokErrorHeader, value)
  })
}

test('a flag wins over the environment, with or without a value', () => {
  const env = { POSTERN_NGROK_ERROR_HEADER: 'off' }
  assert.equal(read([], env).ngrokErrorHeader, false)
  assert.equal(read(['--ngrok-error-header'], env).ngrokErrorHeader, true)
})

test('a value that is neither `on` nor `off` is refused', () => {
  assert.throws(() => read(['--ngrok-error-header', 'yes']), /must be one of `on`, `off`/)
})

test('other settings need a value', () => {
  assert.throws(() => read(['--region']), CommanderError)
})
