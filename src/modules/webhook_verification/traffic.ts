/** Lets in webhooks that their sender signed, and answers for the upstream when a sender asks whose address this is. */
import type { ModuleTools, Phases } from '../phases.ts'
import { webhookChallenges } from './challenges.ts'
import { compileVerifier } from './verify.ts'

export interface WebhookVerificationSettings {
  readonly provider: string
  readonly secret: string
}

/** */
const MAX_BODY_BYTES = 10 * 1024 * 1024

export function compileWebhookVerification(
  { provider, secret }: WebhookVerificationSettings,
  { now }: Pick<ModuleTools, 'now'>,
): Phases {
  const { headers: needed, verify, readsPath } = compileVerifier(provider, secret)
  const challenge = Object.hasOwn(webhookChallenges, provider) ? webhookChallenges[provider] : undefined
  return {
    readsPath,
    async request(ctx) {
      const asked = challenge?.unsigned?.(ctx, secret)
      if (asked) return asked
      // Nobody can make us hold a body by sending one unsigned.
      const isSigned = needed?.some((name) => ctx.headers.has(name)) ?? true
      const body = isSigned ? await ctx.readBody(MAX_BODY_BYTES) : undefined
      const isVerified = body instanceof Buffer && verify(ctx, body, now())
      ctx.found.set('webhook_verification.decision', isVerified ? 'allow' : 'block')
      if (body === 'too_large') return { refuse: 'BODY_TOO_LARGE_TO_CHECK' }
      if (!isVerified) return challenge?.refusal ?? { refuse: 'WEBHOOK_REFUSED' }
      return challenge?.signed?.(body, secret)
    },
  }
}
