/** The `webhook_verification` module: only requests that a known sender signed. */
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { webhookProviders } from '../../model/webhook-providers.ts'
import { defineModule, moduleForm } from '../module.ts'
import { BadSecret, compileVerifier } from './verify.ts'

const form = moduleForm({
  provider: Type.Enum(webhookProviders, { description: 'Who sends the webhooks.' }),
  secret: Type.String({ minLength: 1, maxBytes: 4096, description: 'The secret agreed with the sender.' }),
})

export interface WebhookVerificationSettings {
  readonly provider: string
  readonly secret: string
}

export const webhookVerification = defineModule({
  name: 'webhook_verification',
  about: 'Lets in webhooks that their sender signed with the agreed secret.',
  at: { route: form },
  needs: () => 'http',
  secrets: ['secret'],
  accept: (config, { at }) => {
    const { provider, secret } = config
    try {
      compileVerifier(provider, secret)
    } catch (cause) {
      if (!(cause instanceof BadSecret)) throw cause
      throw new BadValue(`${at}secret`, 'value', `\`${at}secret\` ${cause.message}`)
    }
    return config
  },
  resolve: ({ provider, secret }): WebhookVerificationSettings => ({ provider, secret }),
})
