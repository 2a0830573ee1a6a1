"""One agent's mind: policy, rollout engine, context buffer, credit, learner."""
