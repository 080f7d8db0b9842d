"""OpenTelemetry's own messages read what a collector is sent."""

import base64

from client_case import GREEDY, PROMPT, Client, main, needs
from test_serve_traces import PARENT, TRACE, Collector


@needs("opentelemetry.proto", "google.protobuf")
class Traces(Client):
    def test_are_messages_of_otlp(self):
        from google.protobuf import json_format
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
        from opentelemetry.proto.trace.v1.trace_pb2 import Span

        collector = Collector(200)
        self.addCleanup(collector.close)
        server = self.start("--otlp-traces-endpoint", collector.url())
        server.ask("POST", "/v1/completions", {"prompt": PROMPT, **GREEDY},
                   {"traceparent": f"00-{TRACE}-{PARENT}-01"})
        collector.wait(1)
        # ParseDict rejects members that the messages do not have. Ids are digits in OTLP, and base64 elsewhere.
        read = json_format.ParseDict(collector.bodies[0], ExportTraceServiceRequest())
        resource = read.resource_spans[0]
        self.assertEqual([(one.key, one.value.string_value) for one in resource.resource.attributes][0],
                         ("service.name", "bitnet"))
        span = resource.scope_spans[0].spans[0]
        self.assertEqual(base64.b64encode(span.trace_id).decode(), TRACE)
        self.assertEqual(base64.b64encode(span.parent_span_id).decode(), PARENT)
        self.assertEqual(span.kind, Span.SPAN_KIND_SERVER)
        self.assertLess(span.start_time_unix_nano, span.end_time_unix_nano)
        tokens = {one.key: one.value.int_value for one in span.attributes}
        self.assertEqual(tokens["gen_ai.usage.output_tokens"], GREEDY["max_tokens"])


if __name__ == "__main__":
    main()
