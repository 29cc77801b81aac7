/** The `websocket_tcp_converter` module: WebSocket messages of the visitor are plain bytes for the upstream. */
import { Type } from '../../lib/shape/type.ts'
import { enabled } from '../../model/fields.ts'
import { defineModule } from '../module.ts'

export const websocketTcpConverter = defineModule({
  name: 'websocket_tcp_converter',
  about: 'Accepts only WebSocket connections, and sends the content of their messages upstream as plain bytes.',
  at: { route: Type.Object({ enabled }, { additionalProperties: false }) },
  needs: () => 'http',
  resolve: () => ({}),
})
