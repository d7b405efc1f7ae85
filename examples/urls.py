from django.urls import path

from examples import payments

urlpatterns = [path("payments/refunds", payments.refunds, name="example-refunds")]
