/**
 * Lets in webhooks that their sender signed, and answers the challenges by which senders verify a URL.
 *
 * @example
 * const phases = compileWebhookVerification({ provider: 'github', secret: "It's a Secret to Everybody" }, tools)
 * const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
 * const headers = { 'x-hub-signature-256': signature }
 * await phases.request(request({ method: 'POST', headers, body: 'Hello, World!' })) // undefined
 * await phases.request(request({ method: 'POST', headers, body: 'Hello, Mars!' })) // { refuse: 'WEBHOOK_REFUSED' }
 */

import { bodyMemoryRefusal, type Phases, type RequestContext, type RequestVerdict } from '../phases.ts'
import type { Meter } from '../policy/engine/policy-traffic.ts'
import type { ModuleTools } from '../tools.ts'
import { webhookChallenges } from './challenges.ts'
import type { WebhookVerificationSettings } from './form.ts'
import { compileVerifier } from './verify.ts'

interface Verifying {
  readonly request: (ctx: RequestContext, meter?: Meter) => Promise<RequestVerdict>
}

/** Stands for the body when the sender does not sign it. */
const NO_BODY = Buffer.alloc(0)

/** As a module of its own it verifies a request once. */
const unmetered: Meter = { charge() {} }

export function compileWebhookVerification(
  { provider, secret }: WebhookVerificationSettings,
  { now }: Pick<ModuleTools, 'now'>,
): Phases & Verifying {
  const { isPossible, needsBody, maxBytes, readsPath, verify } = compileVerifier(provider, secret)
  const challenge = Object.hasOwn(webhookChallenges, provider) ? webhookChallenges[provider] : undefined
  return {
    readsPath,
    async request(ctx, meter: Meter = unmetered) {
      const asked = challenge?.unsigned?.(ctx, secret)
      if (asked) return asked
      // The head is checked first, so that an unsigned request cannot make us hold a body.
      const isRead = needsBody || challenge?.signed !== undefined
      const body = !isPossible(ctx, now()) ? undefined : isRead ? await ctx.readBody(maxBytes(ctx)) : NO_BODY
      const isVerified = body instanceof Buffer && (await verify(ctx, body, now(), meter))
      ctx.found.set('webhook_verification.decision', isVerified ? 'allow' : 'block')
      if (body === 'too_large') return { refuse: 'BODY_TOO_LARGE_TO_CHECK' }
      if (body === 'no_memory') return bodyMemoryRefusal
      if (!isVerified) return challenge?.refusal ?? { refuse: 'WEBHOOK_REFUSED' }
      return challenge?.signed?.(body, secret)
    },
  }
}
