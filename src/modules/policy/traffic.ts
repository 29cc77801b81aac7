/**
 * Runs a policy on the connections of an edge or the requests of a route, with the guards of other modules.
 *
 * @example
 * const rule = { name: '', expressions: ["req.headers['x-debug'][0] == '1'"], actions: [{ type: 'deny' }] }
 * const settings = { place: 'route', inbound: [rule], outbound: [], ipPolicies: {}, readsHandshake: false }
 * const phases = compileTraffic(settings, tools)
 * await phases.request(request()) // undefined
 * (await phases.request(request({ headers: { 'x-debug': '1' } }))).respond.status // 403
 */
import { createHash } from 'node:crypto'
import { compileBasicAuth } from '../basic_auth/traffic.ts'
import { compileCircuitBreaker } from '../circuit_breaker/traffic.ts'
import { compileCompression } from '../compression/traffic.ts'
import type { LoginPhases } from '../login/compile-login.ts'
import { compileOAuth } from '../oauth/traffic.ts'
import { loadLibrariesAhead } from '../oidc/libraries.ts'
import { compileOidc } from '../oidc/traffic.ts'
import { type ConnectionVerdict, type Phases, type RequestContext, Slot } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { compileWebhookVerification } from '../webhook_verification/traffic.ts'
import type { LoginGuard, Outcome, PolicyTools } from './engine/action.ts'
import { Evaluator } from './engine/evaluator.ts'
import { Moment } from './engine/moment.ts'
import { type CompiledPolicy, compilePolicySteps, type PolicySettings } from './engine/policy.ts'
import type { PolicyConnection } from './engine/policy-traffic.ts'
import { answering, oauthSettings, type PolicyLogin, policyLogin } from './logins.ts'

/** Notes what the rules of policies do in a dry run. */
export { PolicyNotes } from './engine/explain-notes.ts'

export function compileTraffic(settings: PolicySettings, tools: ModuleTools): Phases {
  const steps = trafficSteps(settings, tools)
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value
}

/** The same, in small steps. */
export function* trafficSteps(settings: PolicySettings, tools: ModuleTools): Generator<void, Phases, void> {
  // Fills with the logins of the policy while it is compiled.
  const logins: PolicyLogin[] = []
  const options = { evaluator: evaluator(), key: keyOf(settings) }
  const policy = yield* compilePolicySteps(settings, policyTools(tools, logins), options)
  return settings.place === 'route' ? onRequests(policy, logins, tools) : onConnections(policy, settings, tools)
}

/** Loads what a policy needs, which takes a tenth of a second; called while nobody waits. */
export function loadPolicies({ inbound }: PolicySettings): void {
  evaluator()
  if (inbound.some(({ actions }) => actions.some(({ type }) => type === 'openid-connect'))) loadLibrariesAhead()
}

let shared: Evaluator | undefined

/** Shared by all policies, since it takes a tenth of a second to load. */
function evaluator(): Evaluator {
  shared ??= new Evaluator()
  return shared
}

/** The same for equal policies, so that rate limits keep their counts when other parts of the edge change. */
function keyOf(settings: PolicySettings): string {
  return createHash('sha256').update(JSON.stringify(settings)).digest('base64url')
}

function policyTools(tools: ModuleTools, logins: PolicyLogin[]): PolicyTools {
  const keepLogin = (phases: LoginPhases): LoginGuard => {
    const login = policyLogin(phases)
    logins.push(login)
    return login
  }
  return {
    ...tools,
    watch: tools.dryRun?.policy,
    guards: {
      basicAuth: compileBasicAuth,
      circuitBreaker: (given, key) => compileCircuitBreaker(given, { ...tools, key: `${tools.key} ${key}` }),
      compression: compileCompression,
      webhook: (given) => compileWebhookVerification(given, tools),
      oauth: (given) => keepLogin(compileOAuth(oauthSettings(given), tools)),
      oidc: (given) => keepLogin(compileOidc(given, tools)),
    },
  }
}

function onRequests(policy: CompiledPolicy, logins: readonly PolicyLogin[], { now, region }: ModuleTools): Phases {
  const slot = new Slot<Moment>()
  const momentOf = (ctx: RequestContext): Moment => {
    const { peer, tls, edgeId } = ctx
    const known = slot.of(ctx)
    if (known) return known
    const connection = { peer, tls, edgeId, serverName: tls?.serverName }
    const moment = new Moment({ connection, request: ctx, now: now(), region })
    slot.set(ctx, moment)
    return moment
  }
  return {
    readsPath: policy.readsPath,
    removesFromRequest: policy.removes('request'),
    removesFromResponse: policy.removes('response'),
    ...(logins.length > 0 && {
      reserves: logins.flatMap(({ reserves }) => reserves),
      hidesCookies: [...new Set(logins.flatMap(({ hidesCookies }) => hidesCookies))],
    }),
    ...(policy.has('request') && {
      request(ctx) {
        const moment = momentOf(ctx)
        moment.answering = answering(logins, ctx)
        return policy.run('request', moment)
      },
      upstream(outgoing, ctx) {
        const moment = slot.of(ctx)
        if (!moment) return
        for (const change of moment.changes) change(outgoing.headers)
        policy.upstream(outgoing, moment)
      },
    }),
    response(incoming, ctx) {
      const moment = momentOf(ctx)
      if (moment.isDenied) return undefined
      moment.answered(incoming)
      const verdict = policy.has('response') ? policy.run('response', moment) : undefined
      const settle = (settled: Outcome): Outcome => {
        policy.response(incoming, moment)
        return settled
      }
      return verdict instanceof Promise ? verdict.then(settle) : settle(verdict)
    },
    done(summary, ctx) {
      const moment = slot.of(ctx)
      if (moment) policy.done(summary, moment)
    },
    release: policy.release,
  }
}

function onConnections(policy: CompiledPolicy, { readsHandshake }: PolicySettings, tools: ModuleTools): Phases {
  const judge = (connection: PolicyConnection): ConnectionVerdict => {
    const moment = new Moment({ connection, now: tools.now(), region: tools.region })
    const verdict = policy.run('connect', moment)
    // No action for connections is asynchronous.
    if (verdict instanceof Promise) throw new Error('a rule for connections returned a promise')
    if (!verdict) return undefined
    return { refuse: 'refuse' in verdict ? verdict.refuse : 'CONNECTION_DENIED' }
  }
  if (!policy.has('connect')) return { release: policy.release }
  if (readsHandshake) {
    return {
      handshake: (tls, peer, { edgeId }) => judge({ peer, edgeId, serverName: tls.serverName, tls }),
      release: policy.release,
    }
  }
  return {
    accept: (peer, { edgeId, serverName }) => judge({ peer, edgeId, serverName, tls: undefined }),
    release: policy.release,
  }
}
