/** Commands through the API: they reach the agent that has the session, and its answer comes back (D43 to D46). */
import assert from 'node:assert/strict'
import type { AgentCommand } from '../../../src/model/presence.ts'
import type { Answer } from '../../support/api-client.ts'
import { eachAgent, sessionOf, tunnelAt } from './each-agent.ts'

const commands: readonly AgentCommand[] = ['restart', 'stop', 'update']

eachAgent((stage, test) => {
  const send = async (metadata: string, command: AgentCommand): Promise<Answer> => {
    const { id } = await sessionOf(stage.platform, metadata)
    return stage.platform.admin.send('POST', `/tunnel_sessions/${id}/${command}`)
  }

  for (const command of commands) {
    test(`${command} reaches the agent it is for, and no other`, async (t) => {
      const received: string[] = []
      const handlers = (who: string) =>
        Object.fromEntries(commands.map((each) => [each, () => void received.push(`${who} ${each}`)]))
      await stage.connect(t, { metadata: `one of ${command}`, commands: handlers('one') })
      await stage.connect(t, { metadata: `two of ${command}`, commands: handlers('two') })
      assert.equal((await send(`two of ${command}`, command)).status, 204)
      assert.deepEqual(received, [`two ${command}`])
      assert.equal((await send(`one of ${command}`, command)).status, 204)
      assert.deepEqual(received, [`two ${command}`, `one ${command}`])
    })

    test(`${command} is a 400 in the words of an agent that does not support it`, async (t) => {
      await stage.connect(t, { metadata: `without ${command}` })
      const { status, body } = await send(`without ${command}`, command)
      assert.deepEqual([status, body.error_code], [400, 'ERR_COMMAND_UNSUPPORTED'])
      assert.match(body.msg, new RegExp(`does not support ${command}: the (agent has not defined|test takes no)`))
    })

    if (!stage.driver.answersCommands) continue
    test(`an agent's answer to ${command} is in the error`, async (t) => {
      const fail = () => {
        throw new Error('not now, thank you')
      }
      await stage.connect(t, { metadata: `failing ${command}`, commands: { [command]: fail } })
      const { status, body } = await send(`failing ${command}`, command)
      const expected = command === 'update' ? [409, 'ERR_COMMAND_REFUSED'] : [502, 'ERR_COMMAND_FAILED']
      assert.deepEqual([status, body.error_code], expected)
      assert.match(body.msg, /not now, thank you/)
    })
  }

  if (!stage.driver.hasSession) {
    test('stop ends the session, which cannot be restarted or updated afterwards', async (t) => {
      const { url } = await stage.open(t, { addr: 1, domain: 'told.example.com' })
      const { id } = (await tunnelAt(stage.platform, url)).tunnel_session
      for (const command of ['restart', 'update']) {
        const { status, body } = await stage.platform.admin.send('POST', `/tunnel_sessions/${id}/${command}`)
        assert.deepEqual([status, body.error_code], [400, 'ERR_SSH_COMMAND_UNSUPPORTED'])
      }
      assert.equal((await stage.platform.admin.send('POST', `/tunnel_sessions/${id}/stop`)).status, 204)
      await stage.gone(id)
      await stage.platform.admin.refused('ERR_NOT_FOUND', 'POST', `/tunnel_sessions/${id}/stop`)
    })
  }

  test('a command to a session that is over is a 404', async (t) => {
    const heartbeat = { everyS: 1, toleranceS: 1 }
    const agent = await stage.connect(t, { metadata: 'over', commands: { stop() {} }, heartbeat })
    const { id } = await sessionOf(stage.platform, 'over')
    await agent.close()
    await stage.gone(id)
    await stage.platform.admin.refused('ERR_NOT_FOUND', 'POST', `/tunnel_sessions/${id}/stop`)
  })
})
