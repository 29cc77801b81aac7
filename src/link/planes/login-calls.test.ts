import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { answerOf, loginAt, originOf, placeOf, START } from '../../control-plane/records/testing/test-logins.ts'
import { CachedLogins } from '../../data-plane/mirrored/cached-logins.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { CallLink } from '../calls/call-link.ts'
import { channelPair } from '../calls/plane-channel.ts'
import { ControlLink } from './control-link.ts'
import { linkedLogins } from './login-calls.ts'
import type { ControlCalls, PlaneCalls } from './plane-calls.ts'

const log = createLog({ level: 'silent' })
const attachment = () => ({ planeId: 'w1', version: '1', sessions: [], tunnels: [] })
const never = () => new Promise<never>(() => {})

/** A control plane that answers some calls. */
function controlPlane(calls: Partial<ControlCalls>) {
  const [ours, channel] = channelPair()
  const answered = { attach: async () => {}, ...calls } as ControlCalls // nothing else is asked for
  return { channel, link: new CallLink<PlaneCalls, ControlCalls>(ours, answered, { log }) }
}

const owner = { ...originOf(), identity: loginAt(START).identity, userId: loginAt(START).user.id }

describe('when the control plane ends before it has answered', () => {
  for (const [what, use] of Object.entries({
    'an answer counts as used, and nobody is let in': (logins: CachedLogins) => logins.useAnswer(answerOf('assertion')),
    'a logout request counts as used': (logins: CachedLogins) =>
      logins.endUser(owner, placeOf().routeId, answerOf('logout request')),
  })) {
    test(`${what}; the next one is not asked again, and answers other calls`, async () => {
      const control = new ControlLink({ log })
      await control.start({ calls: {} as PlaneCalls, attachment }) // nothing is called
      const logins = new CachedLogins({ rows: linkedLogins(() => control), isOurs: () => true, now: () => START, log })
      const asked = Promise.withResolvers<void>()
      const silent = () => {
        asked.resolve()
        return never()
      }
      const first = controlPlane({ useAnswer: silent, endLoginsOf: silent })
      void control.use(first.channel)
      const using = assert.rejects(use(logins), { code: 'STORE_UNAVAILABLE' })
      await asked.promise
      first.link.close()
      await using

      const keys: string[] = []
      const next = controlPlane({
        useAnswer: async ({ key }) => keys.push(key) > 0,
        endLoginsOf: async ({ asked: { key } }) => void keys.push(key),
      })
      void control.use(next.channel)
      assert.equal(await logins.useAnswer(answerOf('another')), true)
      assert.deepEqual(keys, [answerOf('another').key])
      await logins.close()
      control.close()
    })
  }
})
