/** The `webhook_verification` module: only requests that a known sender signed. */
import { Type } from 'typebox'
import { enabled } from '../fields.ts'
import type { Module } from '../module.ts'
import { webhookProviders } from '../webhook-providers.ts'

const form = Type.Object(
  {
    enabled,
    provider: Type.Enum(webhookProviders, { description: 'Who sends the webhooks.' }),
    secret: Type.String({ minLength: 1, maxBytes: 4096, description: 'The secret agreed with the sender.' }),
  },
  { additionalProperties: false },
)

export const webhookVerification: Module = {
  name: 'webhook_verification',
  about: 'Lets in webhooks that their sender signed with the agreed secret.',
  at: { route: form },
  needs: () => 'http',
  secrets: ['secret'],
}
