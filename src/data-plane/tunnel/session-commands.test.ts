import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import type { Message } from '../../link/wire/agent-rpc.ts'
import type { AuthRequest } from '../../link/wire/messages/auth.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import type { ErrorCode } from '../../model/errors.ts'
import type { AgentCommand } from '../../model/presence.ts'
import { TestAgentListener, type TestAgentListenerOptions, until } from './testing/test-agent-listener.ts'

const identity = await makeIdentity()

async function startAgent(request?: Partial<AuthRequest>, options?: TestAgentListenerOptions) {
  const listener = await new TestAgentListener(identity, options).listen()
  after(() => listener.close())
  const { agent, auth } = await listener.online(request)
  return { listener, agent, command: (command: AgentCommand) => listener.registry.command(auth.clientId, command) }
}

const commands = ['restart', 'stop', 'update'] as const

describe('a command', () => {
  for (const command of commands) {
    test(`to ${command} reaches the agent of the session, and only it`, async () => {
      const { listener, agent, command: send } = await startAgent()
      const { agent: other } = await listener.online()
      const heard: number[] = []
      agent.onCommand = (type) => {
        heard.push(type)
        return { Error: '' }
      }
      other.onCommand = () => assert.fail('another agent heard it')
      await send(command)
      assert.deepEqual(heard, [streamTypes[command]])
      // The agent may leave out what is empty.
      agent.onCommand = () => ({})
      await send(command)
    })
  }

  const answers: [command: AgentCommand, answer: Message, code: ErrorCode, status: number][] = [
    ['update', { Error: 'no update available' }, 'COMMAND_REFUSED', 409],
    ['stop', { Error: 'not now' }, 'COMMAND_FAILED', 502],
    ['restart', { Error: 'not now' }, 'COMMAND_FAILED', 502],
    ['stop', { Error: 5 }, 'COMMAND_FAILED', 502],
  ]
  for (const [command, answer, code, status] of answers) {
    test(`to ${command} that is answered ${JSON.stringify(answer)} fails with ${status}`, async () => {
      const { agent, command: send } = await startAgent()
      agent.onCommand = () => answer
      const text = typeof answer.Error === 'string' ? answer.Error : 'must be a string'
      await assert.rejects(send(command), { name: 'Refusal', code, status, message: new RegExp(text) })
    })
  }

  const unsupported: [reason: string | null, text: RegExp][] = [
    ['not on Windows', /not on Windows/],
    [null, /too old/],
    ['two\nlines \u001b[31m', /two\\nlines/],
  ]
  for (const [reason, message] of unsupported) {
    test(`that the agent declared unsupported (${JSON.stringify(reason)}) is not sent`, async () => {
      const { agent, command: send } = await startAgent({
        restartUnsupported: reason,
        stopUnsupported: reason,
        updateUnsupported: reason,
      })
      agent.onCommand = () => assert.fail('it was sent')
      for (const command of commands) {
        await assert.rejects(send(command), { code: 'COMMAND_UNSUPPORTED', status: 400, message })
      }
    })
  }

  test('that is not answered fails with 504, and another may be sent afterwards', async () => {
    const { agent, command: send } = await startAgent({}, { limits: { commandMs: 50 } })
    agent.onCommand = () => undefined
    await assert.rejects(send('stop'), { code: 'COMMAND_TIMEOUT', status: 504 })
    agent.onCommand = () => ({ Error: '' })
    await send('stop')
  })

  test('is the only one of its session until it is answered', async () => {
    const { agent, command: send } = await startAgent()
    const heard: number[] = []
    agent.onCommand = (type) => {
      heard.push(type)
      return undefined
    }
    const first = send('update')
    await until(() => heard.length === 1)
    await assert.rejects(send('stop'), { code: 'COMMAND_PENDING', status: 409 })
    agent.mux.close()
    await assert.rejects(first, { code: 'COMMAND_FAILED', status: 502, message: /session ended/ })
    assert.deepEqual(heard, [streamTypes.update])
  })

  test('to a session that is gone, or never was, is 404', async () => {
    const { listener, agent, command: send } = await startAgent()
    await agent.leave()
    await until(() => listener.load.sessions === 0)
    const missing = { code: 'NOT_FOUND', status: 404, message: 'there is no tunnel session with this id' }
    await assert.rejects(send('stop'), missing)
    await assert.rejects(listener.registry.command('ts_x', 'stop'), missing)
  })
})
