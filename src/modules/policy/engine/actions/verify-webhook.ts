/** `verify-webhook`: lets in webhooks that their sender signed. */
import { Type } from '../../../../lib/shape/type.ts'
import { webhookProviders } from '../../../../model/webhook-providers.ts'
import { defineAction, guardStep } from '../action.ts'
import { closedObject, enforce, text } from '../phase-settings.ts'

export const verifyWebhook = defineAction({
  phases: ['request'],
  guards: true,
  admits: true,
  // Some senders sign the URL too.
  readsPath: () => true,
  config: closedObject({
    provider: Type.Enum([...webhookProviders], { description: 'Who sends the webhooks.' }),
    secret: text(4096, 'The secret agreed with the sender.'),
    enforce,
  }),
  compile: ({ provider, secret, enforce: isEnforced }, { tools }) =>
    guardStep('verify-webhook', tools.guards.webhook({ provider, secret }), isEnforced, `${provider} ${secret}`),
})
