/** Explanations of policies (D55). */
import { closedObject } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { describedFields } from '../../model/described.ts'
import { explanationView } from '../../model/explanation.ts'
import { policy } from '../../modules/policy/form.ts'
import { formsOf } from '../../modules/spellings.ts'
import { presentKind } from './resource.ts'

const id = (what: string) => Type.Optional(Type.String({ minLength: 1, maxBytes: 64, description: what }))

/** The request body: the edge, route or policy to explain, and the traffic. */
const explainForm = closedObject({
  edge_id: id('Id of the edge that the traffic goes through, or of the endpoint of an agent (`ep_…`).'),
  route_id: id('Id of the route that the request goes through.'),
  ...Object.fromEntries(formsOf(policy, 'route').map(({ name, body }) => [name, Type.Optional(body)])),
  ...describedFields,
})

/** Nothing is stored, so there are no ids. */
export const policyExplanations = presentKind({
  kind: 'policy_explanation',
  about: 'What an edge, a route or a policy would do to a described request or connection.',
  path: '/policy/explain',
  listKey: null,
  routes: [
    {
      operation: 'explain_policy',
      summary: 'Explain what would happen to a request or connection',
      method: 'POST',
      at: '',
      body: explainForm,
    },
  ],
  shows: explanationView.properties,
})
